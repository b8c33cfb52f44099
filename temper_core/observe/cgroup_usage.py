"""What cgroups used: CPU time, throttling, memory and pressure, through kept descriptors.

cgroup v2 first. On a hybrid host the controllers may sit on v1 mounts of their own, where the
same things have other names (``cpuacct.usage``, ``memory.usage_in_bytes``).
"""

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from temper_core.observe.descriptors import DescriptorBudget, KeptFile
from temper_core.observe.pressure import PressureFiles, cgroup_pressure
from temper_core.records.snapshots import Pressure


@frozen
class CgroupRoots:
    """Where the hierarchies are mounted; an empty string for one that is not.

    ``unified`` is cgroup v2. ``cpu``, ``cpuacct`` and ``memory`` are v1 mounts of a hybrid host.
    """

    unified: str = "/sys/fs/cgroup"
    cpu: str = ""
    cpuacct: str = ""
    memory: str = ""


@frozen
class Counters:
    """Totals of one cgroup since it was made; ``usage_us`` is None where nobody counts it."""

    usage_us: int | None = None
    periods: int = 0
    throttled_periods: int = 0
    generation: int = 0


@frozen
class CgroupUsage:
    """One cgroup over one window; ``cpu_us`` is None without an earlier look to compare with."""

    cpu_us: int | None = None
    periods: int = 0
    throttled_periods: int = 0
    memory_bytes: int = 0
    pressure: Mapping[str, Pressure] = field(factory=dict)


def parse_flat_keyed(content: bytes) -> dict[str, int]:
    """Read ``key value`` lines, as in ``cpu.stat``; lines that are something else are skipped."""
    found = {}
    for line in content.splitlines():
        key, _, value = line.partition(b" ")
        if value.strip().isdigit():
            found[key.decode("ascii", "replace")] = int(value)
    return found


class CgroupReader:
    """Follows a set of cgroups, given in the engine's form; unknown ones read as nothing."""

    def __init__(self, roots: CgroupRoots, budget: DescriptorBudget) -> None:
        self._roots = roots
        self._budget = budget
        self._followed: dict[str, _Cgroup] = {}

    def read(self, cgroups: Iterable[str]) -> dict[str, CgroupUsage]:
        """Return the usage of *cgroups* since the last call; others are no longer followed."""
        wanted = dict.fromkeys(cgroups)
        for path in self._followed.keys() - wanted.keys():
            self._followed.pop(path).close()
        for path in wanted.keys() - self._followed.keys():
            self._followed[path] = _Cgroup(path, self._roots, self._budget)
        return {path: self._followed[path].read() for path in wanted}

    def close(self) -> None:
        """Let go of all files."""
        self.read(())


class _Cgroup:
    """The files of one cgroup, and its counters at the last look."""

    def __init__(self, path: str, roots: CgroupRoots, budget: DescriptorBudget) -> None:
        def files(*places: tuple[str, str]) -> tuple[KeptFile, ...]:
            return tuple(
                KeptFile(f"{root}/{path.strip('/')}/{name}", budget)
                for root, name in places
                if root
            )

        self._usage = files((roots.unified, "cpu.stat"), (roots.cpuacct, "cpuacct.usage"))
        self._quota = files((roots.cpu, "cpu.stat"))
        self._memory = files(
            (roots.unified, "memory.current"), (roots.memory, "memory.usage_in_bytes")
        )
        self._pressure: PressureFiles | None = None
        if roots.unified:
            self._pressure = cgroup_pressure(f"{roots.unified}/{path.strip('/')}", budget)
        self._before: Counters | None = None

    def read(self) -> CgroupUsage:
        before, now = self._before, self._count()
        self._before = now
        pressure = self._pressure.read() if self._pressure else {}
        memory_bytes = _whole_number(_first(self._memory)[0])
        if before is None or now.usage_us is None:
            return CgroupUsage(memory_bytes=memory_bytes, pressure=pressure)
        earlier = before.usage_us or 0
        if now.generation != before.generation or now.usage_us < earlier:
            before, earlier = Counters(), 0  # made anew since the last look
        return CgroupUsage(
            cpu_us=now.usage_us - earlier,
            periods=max(0, now.periods - before.periods),
            throttled_periods=max(0, now.throttled_periods - before.throttled_periods),
            memory_bytes=memory_bytes,
            pressure=pressure,
        )

    def _count(self) -> Counters:
        content, file = _first(self._usage)
        if file is None:
            return Counters()
        if file.path.endswith("cpuacct.usage"):
            usage_us, keys = _whole_number(content) // 1000, {}
        else:
            keys = parse_flat_keyed(content)
            usage_us = keys.get("usage_usec", 0)
        if "nr_periods" not in keys:  # the v2 root of a hybrid host counts no throttling
            keys = parse_flat_keyed(_first(self._quota)[0])
        return Counters(
            usage_us, keys.get("nr_periods", 0), keys.get("nr_throttled", 0), file.generation
        )

    def close(self) -> None:
        for file in (*self._usage, *self._quota, *self._memory):
            file.close()
        if self._pressure:
            self._pressure.close()


def _first(files: tuple[KeptFile, ...]) -> tuple[bytes, KeptFile | None]:
    for file in files:
        try:
            return file.read(), file
        except OSError:
            continue
    return b"", None


def _whole_number(content: bytes) -> int:
    text = content.strip()
    return int(text) if text.isdigit() else 0
