"""Whether an observed load was representative: long enough, not idle, steady, with wake-ups."""

from collections.abc import Iterator, Sequence

from attrs import frozen

from temper_plugin_trainer.sampling import SampledInterval

NS_PER_S = 1_000_000_000

LEAST_S = 3.0
LEAST_INTERVALS = 6
LEAST_CPUS = 0.02
"""CPUs below which the program is idle."""
LEAST_SLEEPS = 100
"""Wake-ups without which a program is not known, unless it computes."""
COMPUTES_CPUS = 0.5
"""CPUs, without the waits for one, from which a program computes and need not sleep."""
LARGEST_DRIFT = 0.35
"""Deviation of a third of the observation from the mean of all."""
MOST_UNSEEN = 0.2
"""Share of the CPU time of threads that lived between two samples."""
PARTS = 3


@frozen
class ObservedLoad:
    """The totals of an observation. ``asked_s`` are the seconds that were asked for."""

    intervals: Sequence[SampledInterval]
    asked_s: float
    unseen_cpus: float = 0.0
    is_interrupted: bool = False
    is_ended: bool = False

    @property
    def seconds(self) -> float:
        """Seconds observed."""
        return sum(interval.seconds for interval in self.intervals)

    @property
    def cpus(self) -> float:
        """CPUs used by sampled threads, on average."""
        return _rate(self.intervals, "run_ns") / NS_PER_S

    @property
    def waiting(self) -> float:
        """Threads that were runnable without a CPU, on average."""
        return _rate(self.intervals, "delay_ns") / NS_PER_S

    @property
    def sleeps(self) -> int:
        """Voluntary switches of all threads."""
        return sum(interval.used.sleeps for interval in self.intervals)


def load_problems(load: ObservedLoad) -> tuple[str, ...]:
    """Return why *load* is not representative, one line each. Empty if it is."""
    return tuple(_problems(load))


def _problems(load: ObservedLoad) -> Iterator[str]:
    if load.is_interrupted:
        yield f"interrupted after {load.seconds:.1f} s of {load.asked_s:g} s"
    elif load.is_ended:
        yield f"the program ended after {load.seconds:.1f} s of {load.asked_s:g} s"
    if load.seconds < LEAST_S or len(load.intervals) < LEAST_INTERVALS:
        yield (
            f"too short: {load.seconds:.1f} s with {len(load.intervals)} intervals, at least "
            f"{LEAST_S:g} s with {LEAST_INTERVALS} are needed"
        )
        return
    if load.cpus + load.unseen_cpus < LEAST_CPUS:
        yield f"idle: {load.cpus:.3f} CPUs used, at least {LEAST_CPUS} are needed"
        return
    drift = _drift(load.intervals)
    if drift > LARGEST_DRIFT:
        yield (
            f"not steady: a third of the observation differs from the mean by {100 * drift:.0f} %, "
            f"at most {100 * LARGEST_DRIFT:.0f} % are allowed"
        )
    if load.sleeps < LEAST_SLEEPS and load.cpus + load.waiting < COMPUTES_CPUS:
        yield f"too few wake-ups: {load.sleeps}, at least {LEAST_SLEEPS} are needed"
    unseen = load.unseen_cpus / (load.unseen_cpus + load.cpus)
    if unseen > MOST_UNSEEN:
        yield f"{100 * unseen:.0f} % of the CPU time was of threads too short-lived to be seen"


def _drift(intervals: Sequence[SampledInterval]) -> float:
    """Return the largest relative deviation of a third from the mean.

    A neighbour that takes CPUs away changes the CPU time, and one that comes only changes the
    waits. A change of the program's own load changes both the CPU time and the time in which its
    threads are runnable, so the smaller deviation counts.
    """
    run = _drift_of(intervals, ("run_ns",))
    return min(run, _drift_of(intervals, ("run_ns", "delay_ns")))


def _drift_of(intervals: Sequence[SampledInterval], keys: tuple[str, ...]) -> float:
    mean = sum(_rate(intervals, key) for key in keys)
    size = len(intervals) / PARTS
    parts = [intervals[round(size * n) : round(size * (n + 1))] for n in range(PARTS)]
    rates = [sum(_rate(part, key) for key in keys) for part in parts]
    return max(abs(rate - mean) for rate in rates) / mean if mean else 0.0


def _rate(intervals: Sequence[SampledInterval], key: str) -> float:
    seconds = sum(interval.seconds for interval in intervals)
    total: int = sum(getattr(interval.used, key) for interval in intervals)
    return total / seconds if seconds else 0.0
