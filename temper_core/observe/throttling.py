"""Throttling by CFS quotas: how long, and how much of the pressure it explains.

The kernel counts it in ``cpu.stat`` of the cgroup that has the quota, and there alone: a pod's
own file says nothing of its containers' quotas.
"""

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from temper_core.observe.cgroup_limits import CgroupLimits, Quota
from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.descriptors import DescriptorBudget, FirstFile

_PAIR = re.compile(rb"^([a-z_]+) ([0-9]+)$", re.MULTILINE)


def parse_flat_keyed(content: bytes) -> dict[bytes, int]:
    """Read ``key value`` lines, as in ``cpu.stat``. Lines that are something else are skipped."""
    return {key: int(value) for key, value in _PAIR.findall(content)}


@frozen
class ThrottleCounters:
    """Totals of one cgroup since it was made. The time sums over CPUs."""

    periods: int = 0
    throttled_periods: int = 0
    throttled_us: int = 0

    @classmethod
    def of(cls, pairs: Mapping[bytes, int]) -> "ThrottleCounters | None":
        """Take them out of ``cpu.stat``, v2 or v1; None where it counts no throttling."""
        if b"nr_periods" not in pairs:
            return None
        time_us = pairs.get(b"throttled_usec", pairs.get(b"throttled_time", 0) // 1000)
        return cls(pairs[b"nr_periods"], pairs.get(b"nr_throttled", 0), time_us)

    def since(self, before: "ThrottleCounters | None") -> "ThrottleCounters":
        """Return what was counted after *before*. All of it where the cgroup was made anew."""
        if before is None or self == before:
            return NOTHING
        if self.periods < before.periods or self.throttled_us < before.throttled_us:
            return self
        return ThrottleCounters(
            self.periods - before.periods,
            self.throttled_periods - before.throttled_periods,
            self.throttled_us - before.throttled_us,
        )


NOTHING = ThrottleCounters()


@frozen
class Throttled:
    """Throttling in one window. ``explained_us`` is the share of PSI's time that is due to it."""

    periods: int = 0
    throttled_periods: int = 0
    throttled_us: int = 0
    explained_us: float = 0.0


UNTHROTTLED = Throttled()


def explained_us(counted: ThrottleCounters, quota: Quota | None, cpus: int) -> float:
    """Return how long somebody was throttled, out of the time that sums over CPUs.

    PSI's ``some`` is a mean over the CPUs that a cgroup keeps from idling, so the sum must be
    divided by their number. In the periods that were throttled, the cgroup used up its quota and
    was throttled for the rest: both together are the CPUs that it wanted. The number is at least
    one and at most *cpus* (0: unknown).
    """
    if not counted.throttled_us:
        return 0.0
    wanted = 1.0
    if quota is not None and counted.throttled_periods:
        throttled_for_us = counted.throttled_periods * quota.period_us
        wanted = counted.throttled_us / throttled_for_us + quota.cores
    wanted = max(1.0, min(wanted, cpus) if cpus else wanted)
    return counted.throttled_us / wanted


class Throttling:
    """Throttling of one cgroup and of those right below it. Of both the larger counts.

    They overlap: a pod's quota is the sum of its containers', so that both often end together.
    """

    def __init__(self, path: str, roots: CgroupRoots, budget: DescriptorBudget) -> None:
        self._path = path
        self._roots = roots
        self._budget = budget
        self._own = _Counted(path, CgroupRoots(unified="", cpu=roots.cpu), budget)
        self._below: dict[str, _Counted] = {}

    def read(self, told: ThrottleCounters | None, limits: CgroupLimits, cpus: int) -> Throttled:
        """Return what has happened since the last call. *told* are the cgroup's counters of now.

        Where its own file told of no throttling, that of a v1 controller is read.
        """
        if told is None and limits.quota is not None:
            told = self._own.read()
        throttled = _one(self._own.take(told), limits.quota, cpus)
        if limits.quotas_below or self._below:
            below = self._read_below(dict(limits.quotas_below), cpus)
            throttled = max(throttled, below, key=lambda each: each.throttled_us)
        return throttled

    def close(self) -> None:
        """Let go of all files."""
        for counted in (self._own, *self._below.values()):
            counted.close()

    def _read_below(self, quotas: Mapping[str, Quota], cpus: int) -> Throttled:
        for path in self._below.keys() - quotas.keys():
            self._below.pop(path).close()
        for path in quotas.keys() - self._below.keys():
            self._below[path] = _Counted(path, self._roots, self._budget)
        counted = ((self._below[path], quota) for path, quota in quotas.items())
        return added([_one(each.take(each.read()), quota, cpus) for each, quota in counted])


class _Counted:
    """The ``cpu.stat`` of one cgroup that counts throttling, and what it said last."""

    def __init__(self, path: str, roots: CgroupRoots, budget: DescriptorBudget) -> None:
        places = (f"{root}/{path}cpu.stat" for root in (roots.unified, roots.cpu) if root)
        self._file = FirstFile(places, budget)
        self._before: ThrottleCounters | None = None

    def read(self) -> ThrottleCounters | None:
        return ThrottleCounters.of(parse_flat_keyed(self._file.read()))

    def take(self, now: ThrottleCounters | None) -> ThrottleCounters:
        counted = now.since(self._before) if now is not None else NOTHING
        self._before = now
        return counted

    def close(self) -> None:
        self._file.close()


def _one(counted: ThrottleCounters, quota: Quota | None, cpus: int) -> Throttled:
    if counted is NOTHING:
        return UNTHROTTLED
    return Throttled(
        counted.periods,
        counted.throttled_periods,
        counted.throttled_us,
        explained_us(counted, quota, cpus),
    )


def added(counted: Sequence[Throttled]) -> Throttled:
    """Add up the throttling of several cgroups."""
    return Throttled(
        periods=sum(each.periods for each in counted),
        throttled_periods=sum(each.throttled_periods for each in counted),
        throttled_us=sum(each.throttled_us for each in counted),
        explained_us=sum(each.explained_us for each in counted),
    )
