"""Samples of containers, and the steps of a replay that they make."""

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from temper_plugin_rightsizer.demand.interval import Counts, IntervalDemand
from temper_plugin_rightsizer.demand.window import WindowDemand, window_of

Name = str
"""A container of a workload: ``namespace/workload/container``, or any other name."""


@frozen
class Sample:
    """The use of one replica of a container in a window that began at *at* and took *seconds*.

    Attributes:
        at: Seconds, of any clock that the samples share.
        cpu: CPUs, of all threads.
        threads: Name and CPUs of the busiest threads. Empty if they are not known.
        memory_bytes: The working set. 0 if it is not known.
        replica: Which of the workload's replicas it is.
        throttled_s: Seconds of the window in which the quota held threads back.
        oom_kill: Kills for want of memory in the window.

    """

    at: int
    seconds: int
    cpu: float
    threads: tuple[tuple[str, float], ...] = ()
    memory_bytes: int = 0
    replica: str = ""
    throttled_s: float = 0.0
    oom_kill: int = 0

    def window(self) -> WindowDemand:
        """Return the demand of the window."""
        return window_of(self.cpu, self.threads)


@frozen
class Step:
    """The demand of all replicas of a container in the span that begins at *at*."""

    at: int
    replicas: tuple[IntervalDemand, ...]

    def merged(self) -> IntervalDemand:
        """Return the demand of all replicas as one."""
        total = IntervalDemand()
        for demand in self.replicas:
            total.merge(demand)
        return total


Place = tuple[Name, str, int]
"""A container, its replica and a time."""


STEP_S = 3600
"""A step takes this, or longer where a history has days only."""


def steps_of_samples(samples: Iterable[tuple[Name, Sample]]) -> Mapping[Name, Sequence[Step]]:
    """Return the steps of each container, in the order of time."""
    demands: dict[Place, IntervalDemand] = {}
    add_samples(demands, samples)
    return steps_of_demands(demands)


def steps_of_demands(demands: Mapping[Place, IntervalDemand]) -> Mapping[Name, Sequence[Step]]:
    """Return the steps of each container, in the order of time."""
    by_time: dict[Name, dict[int, list[IntervalDemand]]] = {}
    for name, replica, at in sorted(demands):
        by_time.setdefault(name, {}).setdefault(at, []).append(demands[name, replica, at])
    return {
        name: [Step(at, tuple(replicas)) for at, replicas in sorted(times.items())]
        for name, times in by_time.items()
    }


def add_samples(
    demands: dict[Place, IntervalDemand], samples: Iterable[tuple[Name, Sample]]
) -> None:
    """Add each sample to the demand of its step."""
    for name, sample in samples:
        _add(demand_at(demands, name, sample.replica, sample.at), sample)


def demand_at(
    demands: dict[Place, IntervalDemand], name: Name, replica: str, at: int
) -> IntervalDemand:
    """Return the demand of the step that *at* is in, a new one if there is none."""
    return demands.setdefault((name, replica, at // STEP_S * STEP_S), IntervalDemand())


def _add(demand: IntervalDemand, sample: Sample) -> None:
    demand.add(sample.window(), sample.seconds)
    if sample.memory_bytes:
        demand.memory.add(sample.memory_bytes, sample.seconds)
    demand.counts.merge(
        Counts(
            throttled_s=sample.throttled_s,
            peak_bytes=sample.memory_bytes,
            oom_kill=sample.oom_kill,
        )
    )
