"""Throttling by CFS quotas: its duration, and the part of the pressure that it explains.

The kernel counts it only in ``cpu.stat`` of the cgroup that has the quota. A pod's own file does
not include its containers' quotas.
"""

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from temper_core.observe.cgroup_limits import CgroupLimits, Quota
from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.descriptors import DescriptorBudget, FirstFile

_PAIR = re.compile(rb"^([a-z_]+) ([0-9]+)$", re.MULTILINE)


def parse_flat_keyed(content: bytes) -> dict[bytes, int]:
    """Parse ``key value`` lines, as in ``cpu.stat``. Other lines are skipped."""
    return {key: int(value) for key, value in _PAIR.findall(content)}


@frozen
class ThrottleCounters:
    """Totals of one cgroup since it was made. The time is a sum over CPUs."""

    periods: int = 0
    throttled_periods: int = 0
    throttled_us: int = 0

    @classmethod
    def of(cls, pairs: Mapping[bytes, int]) -> "ThrottleCounters | None":
        """Read the counters of ``cpu.stat``, v2 or v1. Return None if it counts no throttling."""
        if b"nr_periods" not in pairs:
            return None
        time_us = pairs.get(b"throttled_usec", pairs.get(b"throttled_time", 0) // 1000)
        return cls(pairs[b"nr_periods"], pairs.get(b"nr_throttled", 0), time_us)

    def since(self, before: "ThrottleCounters | None") -> "ThrottleCounters":
        """Return the increase since *before*. For a recreated cgroup this is the whole count."""
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
    """Throttling in one window. ``explained_us`` is the part of PSI's time that it explains."""

    periods: int = 0
    throttled_periods: int = 0
    throttled_us: int = 0
    explained_us: float = 0.0


UNTHROTTLED = Throttled()


def explained_us(counted: ThrottleCounters, quota: Quota | None, cpus: int) -> float:
    """Return the throttled wall-clock time, computed from the time that is a sum over CPUs.

    PSI's ``some`` is a mean over the CPUs that a cgroup keeps from idling, so the sum must be
    divided by their number. In a throttled period the cgroup used up its quota and was throttled
    for the rest. Both together are the CPUs that it needed. The number is at least one and at most
    *cpus* (0: unknown).
    """
    if not counted.throttled_us:
        return 0.0
    needed = 1.0
    if quota is not None and counted.throttled_periods:
        throttled_for_us = counted.throttled_periods * quota.period_us
        needed = counted.throttled_us / throttled_for_us + quota.cores
    needed = max(1.0, min(needed, cpus) if cpus else needed)
    return counted.throttled_us / needed


class Throttling:
    """Throttling of one cgroup or of its children, whichever is larger.

    Both overlap: a pod's quota is the sum of its containers', so that they often run out together.
    """

    def __init__(self, path: str, roots: CgroupRoots, budget: DescriptorBudget) -> None:
        self._path = path
        self._roots = roots
        self._budget = budget
        self._own = _Counted(path, CgroupRoots(unified="", cpu=roots.cpu), budget)
        self._below: dict[str, _Counted] = {}

    def read(self, counters: ThrottleCounters | None, limits: CgroupLimits, cpus: int) -> Throttled:
        """Return the throttling since the last call. *counters* are the cgroup's current counters.

        Without them, the file of the v1 controller is read.
        """
        if counters is None and limits.quota is not None:
            counters = self._own.read()
        throttled = _one(self._own.take(counters), limits.quota, cpus)
        if limits.quotas_below or self._below:
            below = self._read_below(dict(limits.quotas_below), cpus)
            throttled = max(throttled, below, key=lambda option: option.throttled_us)
        return throttled

    def close(self) -> None:
        """Close all files."""
        for counted in (self._own, *self._below.values()):
            counted.close()

    def _read_below(self, quotas: Mapping[str, Quota], cpus: int) -> Throttled:
        for path in self._below.keys() - quotas.keys():
            self._below.pop(path).close()
        for path in quotas.keys() - self._below.keys():
            self._below[path] = _Counted(path, self._roots, self._budget)
        counted = ((self._below[path], quota) for path, quota in quotas.items())
        return added(
            [_one(counters.take(counters.read()), quota, cpus) for counters, quota in counted]
        )


class _Counted:
    """The ``cpu.stat`` of one cgroup that counts throttling, and its last counters."""

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
        periods=sum(throttled.periods for throttled in counted),
        throttled_periods=sum(throttled.throttled_periods for throttled in counted),
        throttled_us=sum(throttled.throttled_us for throttled in counted),
        explained_us=sum(throttled.explained_us for throttled in counted),
    )
