"""The usage of cgroups: CPU time, throttling, memory and pressure, through kept descriptors.

The files of cgroup v2 come first. On a hybrid host the controllers may be on v1 mounts, where the
files have other names (``cpuacct.usage``, ``memory.usage_in_bytes``).
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping

from attrs import field, frozen

from temper_core.observe.cgroup_limits import NO_LIMITS, CgroupLimits, LimitsReader
from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.descriptors import DescriptorBudget, FirstFile
from temper_core.observe.pressure import PressureFiles, cgroup_pressure
from temper_core.observe.throttling import (
    ThrottleCounters,
    Throttled,
    Throttling,
    parse_flat_keyed,
)
from temper_core.records.snapshots import Pressure


@frozen
class CgroupUsage:
    """One cgroup over one window. ``cpu_us`` is None without an earlier look to compare with.

    ``stalled_us`` is the time in which a task of it waited for a CPU. An unknown ``stalled_us`` is
    None, an unknown ``memory_bytes`` is -1.
    """

    cpu_us: int | None = None
    memory_bytes: int = -1
    pressure: Mapping[str, Pressure] = field(factory=dict)
    throttled: Throttled = Throttled()
    stalled_us: int | None = None
    limits: CgroupLimits = NO_LIMITS


class CgroupReader:
    """Reads a set of cgroups, given in the engine's form. A missing cgroup has no usage.

    *cpus* returns the machine's current number of CPUs.
    """

    def __init__(
        self, roots: CgroupRoots, budget: DescriptorBudget, cpus: Callable[[], int] = lambda: 0
    ) -> None:
        self._roots = roots
        self._budget = budget
        self._cpus = cpus
        self._limits = LimitsReader(roots, cpus)
        self._followed: dict[str, _Cgroup] = {}

    def follow(self, cgroups: Iterable[str], changed: Container[str] = ()) -> None:
        """Read *cgroups* from now on, and no others. The limits of *changed* ones are read anew."""
        paths = dict.fromkeys(cgroups)
        for path in self._followed.keys() - paths.keys():
            self._followed.pop(path).close()
        for path in paths.keys() - self._followed.keys():
            self._followed[path] = _Cgroup(path, self._roots, self._budget)
        self._limits.follow(paths, changed)

    def read(self, window_s: float = 0.0, unmoved: Collection[str] = ()) -> dict[str, CgroupUsage]:
        """Return the usage of each cgroup since the last call, *window_s* ago.

        *unmoved* are resources for which no task of the node has waited since.
        """
        self._limits.look(window_s)
        cpus = self._cpus()
        return {
            path: cgroup.read(self._limits.of(path), unmoved, cpus)
            for path, cgroup in self._followed.items()
        }

    def close(self) -> None:
        """Close all files."""
        self.follow(())


class _Cgroup:
    """The files of one cgroup, and its counters at the last look."""

    def __init__(self, path: str, roots: CgroupRoots, budget: DescriptorBudget) -> None:
        path = f"{path.strip('/')}/"

        def first_of(*places: tuple[str, str]) -> FirstFile:
            return FirstFile((f"{root}/{path}{name}" for root, name in places if root), budget)

        self._usage = first_of((roots.unified, "cpu.stat"), (roots.cpuacct, "cpuacct.usage"))
        self._memory = first_of(
            (roots.unified, "memory.current"), (roots.memory, "memory.usage_in_bytes")
        )
        self._throttling = Throttling(path, roots, budget)
        self._pressure: PressureFiles | None = None
        if roots.unified:
            self._pressure = cgroup_pressure(f"{roots.unified}/{path.strip('/')}", budget)
        self._used = _Total()
        self._stalled = _Total()

    def read(self, limits: CgroupLimits, unmoved: Collection[str], cpus: int) -> CgroupUsage:
        content = self._usage.read()
        pairs = parse_flat_keyed(content)  # only cpu.stat has keys
        used_us = pairs.get(b"usage_usec")
        if used_us is None and content:
            used_us = _whole_number(content) // 1000
        pressure = self._pressure.read(unmoved) if self._pressure else {}
        stalled_us = pressure["cpu"].some.total_us if "cpu" in pressure else None
        return CgroupUsage(
            cpu_us=self._used.take(used_us, self._usage.generation),
            memory_bytes=_whole_number(self._memory.read(), unknown=-1),
            pressure=pressure,
            throttled=self._throttling.read(ThrottleCounters.of(pairs), limits, cpus),
            stalled_us=self._stalled.take(stalled_us),
            limits=limits,
        )

    def close(self) -> None:
        for file in (self._usage, self._memory, self._throttling, self._pressure):
            if file is not None:
                file.close()


class _Total:
    """A kernel counter and its value at the last look."""

    def __init__(self) -> None:
        self._before: int | None = None
        self._generation = 0
        self._has_looked = False

    def take(self, now: int | None, generation: int = 0) -> int | None:
        """Return the increase since the last look, or None if it is not known.

        A counter that is new since the last look, or was recreated, began at zero.
        """
        before, had_looked = self._before, self._has_looked
        is_new = before is None or generation != self._generation
        self._before, self._generation, self._has_looked = now, generation, True
        if now is None or not had_looked:
            return None
        return now if is_new or before is None or now < before else now - before


def _whole_number(content: bytes, unknown: int = 0) -> int:
    text = content.strip()
    return int(text) if text.isdigit() else unknown
