"""The limits of cgroups: quota, weight and CPUs. They change rarely, so they are cached.

The files of cgroup v2 come first: ``cpu.max``, ``cpu.weight``, ``cpuset.cpus.effective``. The v1
controllers of a hybrid host have ``cpu.cfs_quota_us``, ``cpu.shares`` and
``cpuset.effective_cpus``.
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
"""Seconds in which every cgroup's limits are read again once. Opening files is expensive, and a
changed limit of a pod changes the pod as well, which ``follow`` receives."""
MOST_BELOW = 64
"""Most child cgroups whose own quotas are read: the containers of a pod."""
DEFAULT_WEIGHT = 100
SHARES_OF_DEFAULT = 1024
_RANGE = re.compile(rb"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_MOST_CPUS = 8192
"""The largest NR_CPUS that any architecture can be built with."""

Read = TypeVar("Read")


@frozen
class Quota:
    """A CFS quota: the CPU time allowed in every period, both in microseconds."""

    time_us: int
    period_us: int

    @property
    def cores(self) -> float:
        """The quota in CPUs."""
        return self.time_us / self.period_us


@frozen
class CgroupLimits:
    """The limits of one cgroup, None or empty where there is none.

    ``weight`` is on the scale of cgroup v2, None for the default of 100. ``cpuset`` is the
    effective set of CPUs, empty for all CPUs of the machine. ``quotas_below`` are the quotas of
    child cgroups by path. The kernel counts their throttling only there.
    """

    quota: Quota | None = None
    weight: int | None = None
    cpuset: tuple[int, ...] = ()
    quotas_below: tuple[tuple[str, Quota], ...] = ()

    @property
    def quota_cores(self) -> float | None:
        """The cgroup's own quota in CPUs."""
        return self.quota.cores if self.quota else None


NO_LIMITS = CgroupLimits()


def parse_quota(content: bytes) -> Quota | None:
    """Parse ``cpu.max``: ``max 100000`` or two times in microseconds. Raise ValueError else."""
    time, period = content.split()
    if int(period) <= 0:
        raise ValueError("the period must be greater than 0")
    return None if time == b"max" else _quota(int(time), int(period))


def _quota(time_us: int, period_us: int) -> Quota | None:
    return Quota(time_us, period_us) if time_us >= 0 and period_us > 0 else None


def parse_cpus(content: bytes) -> tuple[int, ...]:
    """Parse a list such as ``0-3,8``. Return it ascending. Raise ValueError if it is malformed."""
    cpus: set[int] = set()
    for part in filter(None, content.strip().split(b",")):
        matched = _RANGE.fullmatch(part)
        if matched is None:
            raise ValueError("this is no list of CPUs")
        first, last = int(matched[1]), int(matched[2] or matched[1])
        if not first <= last < _MOST_CPUS:
            raise ValueError("this is no range of CPUs")
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


class LimitsReader:
    """Caches the limits of a set of cgroups, and reads a few of them again at every look."""

    def __init__(self, roots: CgroupRoots, cpus: Callable[[], int]) -> None:
        self._roots = roots
        self._cpus = cpus
        self._known: dict[str, CgroupLimits] = {}
        self._round: deque[str] = deque()
        self._owed = 0.0

    def follow(self, cgroups: Iterable[str], changed: Container[str] = ()) -> None:
        """Cache the limits of *cgroups*, in the engine's form, and drop all others.

        New and *changed* cgroups are read at once.
        """
        before = self._known
        self._known = {
            path: before[path] if path in before and path not in changed else self._read(path)
            for path in cgroups
        }
        if self._known.keys() != before.keys():
            self._round = deque(self._known)

    def look(self, elapsed_s: float) -> None:
        """Read a share of the cgroups again, so that all are read within ``ROUND_S``."""
        count = len(self._round)
        self._owed = min(count, self._owed + count * elapsed_s / ROUND_S)
        while self._owed >= 1:
            self._owed -= 1
            path = self._round[0]
            self._round.rotate(-1)
            self._known[path] = self._read(path)

    def of(self, cgroup: str) -> CgroupLimits:
        """Return the limits of a cgroup, ``NO_LIMITS`` for one that is not followed."""
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
            quotas = []
            for name in _folders(f"{root}/{path}")[:MOST_BELOW]:
                quota = self._quota(f"{path}/{name}")
                if quota is not None:
                    quotas.append((f"{path}/{name}/", quota))
            if quotas:
                return quotas
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
            # This is the kernel's conversion, not the kubelet's. Only ratios of weights matter.
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
