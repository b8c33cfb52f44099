"""The demand of one container over an interval: what the history keeps."""

from attrs import define, evolve, field

from temper_plugin_rightsizer.demand.growth import Floor
from temper_plugin_rightsizer.demand.histogram import DemandHistogram
from temper_plugin_rightsizer.demand.waits import Waits
from temper_plugin_rightsizer.demand.window import WindowDemand

LEAST_CPU = 0.001
"""CPUs: one millicore."""
LEAST_BYTES = 1024.0 * 1024.0
HOT_NAME = 0.5
"""CPUs from which a thread's name is kept."""
MOST_NAMES = 8


def cpu_histogram() -> DemandHistogram:
    """Return an empty histogram of CPUs."""
    return DemandHistogram(LEAST_CPU)


def memory_histogram() -> DemandHistogram:
    """Return an empty histogram of bytes."""
    return DemandHistogram(LEAST_BYTES)


@define
class Counts:
    """Counters of an interval, from the container's cgroup.

    Times are in seconds. ``peak_bytes`` is the largest use, and ``least_bytes`` the least one, 0 if
    it is unknown. ``high``, ``max``, ``oom`` and ``oom_kill`` are those of ``memory.events``
    (cgroup-v2.rst, "Memory Interface Files"). ``reclaimed_core_s`` is CPU time of background work
    on CPUs that others requested, ``freed_core_s`` the lowered part of the CPU request over time.

    ``cpu_some_s`` and the like are the time in which a thread (``some``), or all threads
    (``full``), waited for the resource. ``pressure_s`` is the time in which that was measured, 0 if
    the kernel has no PSI for the cgroup (accounting/psi.rst, "Pressure interface").

    ``unwatched_s`` is the part of the measured time in which the threads are not known.
    """

    periods: int = 0
    throttled_periods: int = 0
    throttled_s: float = 0.0
    peak_bytes: int = 0
    high: int = 0
    max: int = 0
    oom: int = 0
    oom_kill: int = 0
    least_bytes: int = 0
    reclaimed_core_s: float = 0.0
    freed_core_s: float = 0.0
    pressure_s: float = 0.0
    cpu_some_s: float = 0.0
    memory_some_s: float = 0.0
    memory_full_s: float = 0.0
    io_some_s: float = 0.0
    io_full_s: float = 0.0
    unwatched_s: float = 0.0

    def merge(self, other: "Counts") -> None:
        """Add *other*. Sizes do not add up: the largest and the least one stay."""
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)
        known = (size for size in (self.least_bytes, other.least_bytes) if size)
        self.least_bytes = min(known, default=0)
        for name in ADDITIVE:
            setattr(self, name, getattr(self, name) + getattr(other, name))


ADDITIVE = (
    "periods",
    "throttled_periods",
    "throttled_s",
    "high",
    "max",
    "oom",
    "oom_kill",
    "reclaimed_core_s",
    "freed_core_s",
    "pressure_s",
    "cpu_some_s",
    "memory_some_s",
    "memory_full_s",
    "io_some_s",
    "io_full_s",
    "unwatched_s",
)


@define
class IntervalDemand:
    """Histograms and counters of one container over an interval, or over many.

    ``ranks[k]`` is the use of the (k+1)-th busiest thread, ``rests[k]`` the use of all threads but
    the k+1 busiest. A thread is identified by its rank in each window, so that two threads that
    alternate count as one hot thread, and a restart changes nothing. ``names`` has seconds by the
    name family of threads that used ``HOT_NAME`` CPUs or more. ``waits`` are those of the ranks and
    name families in the run queue. ``startup`` is the demand of the
    first minutes after a start of the container, which is not in the rest. ``floors`` has the least
    working set by the begin of an interval. ``day_before`` is the demand that followed this time of
    day a day ago, None if it is not known. A reader of the history fills both, for one container.
    """

    cpu: DemandHistogram = field(factory=cpu_histogram)
    run_delay: DemandHistogram = field(factory=cpu_histogram)
    memory: DemandHistogram = field(factory=memory_histogram)
    ranks: list[DemandHistogram] = field(factory=list)
    rests: list[DemandHistogram] = field(factory=list)
    names: dict[str, int] = field(factory=dict)
    counts: Counts = field(factory=Counts)
    waits: Waits = field(factory=Waits)
    startup: "IntervalDemand | None" = None
    floors: dict[int, Floor] = field(factory=dict, eq=False)
    day_before: "IntervalDemand | None" = None

    def add(self, demand: WindowDemand, seconds: int) -> None:
        """Add a window of *seconds*."""
        self._extend(len(demand.ranked))
        self.cpu.add(demand.total, seconds)
        self.run_delay.add(demand.run_delay, seconds)
        for rank, (used, rest) in enumerate(zip(self.ranks, self.rests, strict=True)):
            used.add(demand.ranked[rank] if rank < len(demand.ranked) else 0.0, seconds)
            rest.add(demand.rest(rank + 1), seconds)
        self._add_names(demand, seconds)
        if demand.waits is not None:
            self.waits.add(demand.waits, seconds)

    def merge(self, other: "IntervalDemand") -> None:
        """Add *other*, of another time or another replica."""
        self._extend(len(other.ranks))
        for rank, (used, rest) in enumerate(zip(self.ranks, self.rests, strict=True)):
            if rank < len(other.ranks):
                used.merge(other.ranks[rank])
                rest.merge(other.rests[rank])
            elif other.watched_s:
                used.add(0.0, other.watched_s)
                rest.merge(other.rests[-1] if other.rests else other.cpu)
        self.cpu.merge(other.cpu)
        self.run_delay.merge(other.run_delay)
        self.memory.merge(other.memory)
        self.counts.merge(other.counts)
        self.waits.merge(other.waits)
        for name, seconds in other.names.items():
            self.names[name] = self.names.get(name, 0) + seconds
        self._bound_names()
        self.floors.update(other.floors)
        if other.startup is not None:
            self.startup = self.startup or IntervalDemand()
            self.startup.merge(other.startup)
        if other.day_before is not None:
            self.add_day_before(other.day_before)

    def add_day_before(self, other: "IntervalDemand") -> None:
        """Add *other* to the demand that followed this time of day a day ago."""
        self.day_before = self.day_before or IntervalDemand()
        self.day_before.merge(other)

    @property
    def seconds(self) -> int:
        """The measured time, with that of start-ups."""
        return self.cpu.seconds + (self.startup.cpu.seconds if self.startup else 0)

    @property
    def watched_s(self) -> int:
        """The measured time in which the threads are known, without that of start-ups."""
        return max(self.cpu.seconds - round(self.counts.unwatched_s), 0)

    @property
    def is_mostly_startup(self) -> bool:
        """Whether start-ups took more time than all the rest, as of a short job."""
        return self.startup is not None and self.startup.cpu.seconds > self.cpu.seconds

    def whole(self) -> "IntervalDemand":
        """Return the demand with that of start-ups among the rest."""
        if self.startup is None:
            return self
        total = IntervalDemand()
        total.merge(evolve(self, startup=None))
        total.merge(self.startup)
        return total

    def note_floor(self, at: int) -> None:
        """Have the least working set of an interval that began at *at* among the floors."""
        if self.counts.least_bytes or self.startup:
            self.floors[at] = Floor(self.counts.least_bytes, self.startup is not None)

    def peak_bytes(self) -> int:
        """Return the peak of memory, from the counters or the histogram. 0 if it is unknown."""
        return max(self.counts.peak_bytes, round(self.memory.peak()))

    def take_peak(self, other: "IntervalDemand") -> None:
        """Take over the peak of memory of *other* and its floors, and nothing else."""
        self.counts.peak_bytes = max(self.peak_bytes(), other.peak_bytes())
        self.floors.update(other.floors)

    def _extend(self, ranks: int) -> None:
        """Have histograms of *ranks* ranks. In the time so far the new ranks were not in use."""
        covered = self.watched_s
        while len(self.ranks) < ranks:
            used = cpu_histogram()
            if covered:
                used.add(0.0, covered)
            above = self.rests[-1] if self.rests else self.cpu
            self.ranks.append(used)
            self.rests.append(DemandHistogram(LEAST_CPU, dict(above.buckets) if covered else {}))

    def _add_names(self, demand: WindowDemand, seconds: int) -> None:
        for name, used in zip(demand.names, demand.ranked, strict=True):
            if used >= HOT_NAME:
                self.names[name] = self.names.get(name, 0) + seconds
        self._bound_names()

    def _bound_names(self) -> None:
        if len(self.names) > MOST_NAMES:
            kept = sorted(self.names, key=self.names.__getitem__, reverse=True)[:MOST_NAMES]
            self.names = {name: self.names[name] for name in kept}
