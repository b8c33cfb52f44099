"""What a container used, as a report has it."""

from collections.abc import Mapping

from temper_plugin_rightsizer.advice.advising import judged
from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.demand.interval import IntervalDemand


def used(
    demand: IntervalDemand, options: AdviceOptions, idle: float | None = 0.0
) -> Mapping[str, float | int | None]:
    """Return the figures that the advice for *demand* follows from, in CPUs, seconds and bytes.

    *idle* is the use of the busiest thread where no thread was measured.
    """
    startup = demand.startup or IntervalDemand()
    demand = judged(demand)
    hottest = demand.ranks[0].percentile(options.percentile) if demand.ranks else idle
    return {
        "cpu_mean": round(demand.cpu.mean(), 3),
        "cpu_percentile": round(demand.cpu.percentile(options.percentile), 3),
        "cpu_peak": round(demand.cpu.peak(), 3),
        "hottest_thread": None if hottest is None else round(hottest, 3),
        "memory_peak_bytes": demand.counts.peak_bytes,
        "throttled_s": round(demand.counts.throttled_s, 3),
        "startup_s": startup.cpu.seconds,
        "startup_cpu_peak": round(startup.cpu.peak(), 3),
        "startup_memory_peak_bytes": startup.peak_bytes(),
    }
