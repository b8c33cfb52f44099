"""What cgroups ask of the kernel: quota, weight and CPUs. These change rarely, so they are kept.

cgroup v2 first: ``cpu.max``, ``cpu.weight``, ``cpuset.cpus.effective``. The v1 controllers of a
hybrid host have ``cpu.cfs_quota_us``, ``cpu.shares`` and ``cpuset.effective_cpus``.
"""

import math
import os
import re
from collections import deque
from collections.abc import Callable, Container, Iterable
from typing import TypeVar

from attrs import frozen

from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.descriptors import read_once

ROUND_S = 300.0
"""Seconds in which every cgroup's limits are read again once: opening files is what is dear, and
who changes the limits of a pod changes the pod as well, which ``follow`` is told."""
MOST_BELOW = 64
"""Cgroups right below one whose own quotas are looked for: the containers of a pod."""
DEFAULT_WEIGHT = 100
SHARES_OF_DEFAULT = 1024
_RANGE = re.compile(rb"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_MOST_CPUS = 8192
"""The largest NR_CPUS that any architecture can be built with."""

Read = TypeVar("Read")


@frozen
class Quota:
    """A CFS quota: the CPU time that may be used in every period, both in microseconds."""

    time_us: int
    period_us: int

    @property
    def cores(self) -> float:
        """The quota in CPUs."""
        return self.time_us / self.period_us


@frozen
class CgroupLimits:
    """What one cgroup asks for; None and empty where it asks for nothing.

    ``weight`` is on the scale of cgroup v2, whose default of 100 counts as nothing. ``cpuset`` are
    the CPUs that it may really use, empty for all of the machine's. ``quotas_below`` are those
    of the cgroups right below, by path: the kernel counts their throttling there alone.
    """

    quota: Quota | None = None
    weight: int | None = None
    cpuset: tuple[int, ...] = ()
    quotas_below: tuple[tuple[str, Quota], ...] = ()

    @property
    def quota_cores(self) -> float | None:
        """Its own quota in CPUs."""
        return self.quota.cores if self.quota else None


NO_LIMITS = CgroupLimits()


def parse_quota(content: bytes) -> Quota | None:
    """Read ``cpu.max``: ``max 100000`` or two times in microseconds. Raise ValueError else."""
    time, period = content.split()
    if int(period) <= 0:
        raise ValueError("a period has a length")
    return None if time == b"max" else _quota(int(time), int(period))


def _quota(time_us: int, period_us: int) -> Quota | None:
    return Quota(time_us, period_us) if time_us >= 0 and period_us > 0 else None


def parse_cpus(content: bytes) -> tuple[int, ...]:
    """Read a list such as ``0-3,8``, ascending. Raise ValueError where it is something else."""
    found: set[int] = set()
    for part in filter(None, content.strip().split(b",")):
        matched = _RANGE.fullmatch(part)
        if matched is None:
            raise ValueError("this is no list of CPUs")
        first, last = int(matched[1]), int(matched[2] or matched[1])
        if not first <= last < _MOST_CPUS:
            raise ValueError("this is no range of CPUs")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


class LimitsReader:
    """Knows the limits of a set of cgroups, and reads a few of them again at every look."""

    def __init__(self, roots: CgroupRoots, cpus: Callable[[], int]) -> None:
        self._roots = roots
        self._cpus = cpus
        self._known: dict[str, CgroupLimits] = {}
        self._round: deque[str] = deque()
        self._owed = 0.0

    def follow(self, cgroups: Iterable[str], changed: Container[str] = ()) -> None:
        """Know the limits of *cgroups*, in the engine's form, and of no others.

        Read at once are those that are new, and those that have *changed*.
        """
        known = self._known
        self._known = {
            path: known[path] if path in known and path not in changed else self._read(path)
            for path in cgroups
        }
        if self._known.keys() != known.keys():
            self._round = deque(self._known)

    def look(self, elapsed_s: float) -> None:
        """Read so many of them again that all have had their turn within ``ROUND_S``."""
        count = len(self._round)
        self._owed = min(count, self._owed + count * elapsed_s / ROUND_S)
        while self._owed >= 1:
            self._owed -= 1
            path = self._round[0]
            self._round.rotate(-1)
            self._known[path] = self._read(path)

    def of(self, cgroup: str) -> CgroupLimits:
        """Return what is known of a cgroup. Of one that is not followed, nothing."""
        return self._known.get(cgroup, NO_LIMITS)

    def _read(self, cgroup: str) -> CgroupLimits:
        path = cgroup.strip("/")
        return CgroupLimits(
            quota=self._quota(path),
            weight=self._weight(path),
            cpuset=self._cpuset(path),
            quotas_below=tuple(self._below(path)),
        )

    def _below(self, path: str) -> Iterable[tuple[str, Quota]]:
        for root in filter(None, (self._roots.unified, self._roots.cpu)):
            found = []
            for name in _folders(f"{root}/{path}")[:MOST_BELOW]:
                quota = self._quota(f"{path}/{name}")
                if quota is not None:
                    found.append((f"{path}/{name}/", quota))
            if found:
                return found
        return ()

    def _quota(self, path: str) -> Quota | None:
        v2 = _parsed(self._roots.unified, f"{path}/cpu.max", parse_quota)
        if v2 is not None or not self._roots.cpu:
            return v2
        time_us = _parsed(self._roots.cpu, f"{path}/cpu.cfs_quota_us", int)
        period_us = _parsed(self._roots.cpu, f"{path}/cpu.cfs_period_us", int)
        return _quota(time_us, period_us) if time_us and period_us else None

    def _weight(self, path: str) -> int | None:
        weight = _parsed(self._roots.unified, f"{path}/cpu.weight", int)
        shares = _parsed(self._roots.cpu, f"{path}/cpu.shares", int) if weight is None else None
        if shares is not None:
            # As the kernel does it, and not the kubelet: only the ratio between cgroups counts.
            weight = max(1, math.floor(shares * DEFAULT_WEIGHT / SHARES_OF_DEFAULT + 0.5))
        return None if weight == DEFAULT_WEIGHT else weight

    def _cpuset(self, path: str) -> tuple[int, ...]:
        cpus = _parsed(self._roots.unified, f"{path}/cpuset.cpus.effective", parse_cpus)
        if cpus is None:
            cpus = _parsed(self._roots.cpuset, f"{path}/cpuset.effective_cpus", parse_cpus)
        return cpus if cpus and len(cpus) < self._cpus() else ()


def _parsed(root: str, path: str, parse: Callable[[bytes], Read]) -> Read | None:
    if not root:
        return None
    try:
        return parse(read_once(f"{root}/{path}"))
    except (OSError, ValueError):
        return None


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
