"""The use of a container, as a report has it."""

from collections.abc import Mapping

from temper_plugin_rightsizer.advice.advising import judged
from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.advice.pressure import pressure
from temper_plugin_rightsizer.advice.waits import run_queue
from temper_plugin_rightsizer.demand.histogram import DemandHistogram
from temper_plugin_rightsizer.demand.interval import IntervalDemand

REALIZED = "reclaimed_core_s", "freed_core_s"
"""The figures that only agents measure."""
QUANTILES = (0.1, 0.5, 0.9, 0.99, 1.0)


def quantiles(histogram: DemandHistogram) -> list[float]:
    """Return P10, P50, P90, P99 and the peak."""
    return [round(histogram.percentile(share), 3) for share in QUANTILES]


def used(
    demand: IntervalDemand, options: AdviceOptions, idle: float | None = 0.0
) -> Mapping[str, object]:
    """Return the figures that the advice for *demand* follows from, in CPUs, seconds and bytes.

    *idle* is the use of the busiest thread where no thread was measured.
    """
    startup = demand.startup or IntervalDemand()
    whole = demand.whole().counts
    demand = judged(demand)
    hottest = demand.ranks[0].percentile(options.percentile) if demand.ranks else idle
    ranked = demand.ranks[0] if demand.ranks else None
    return {
        "cpu_quantiles": quantiles(demand.cpu),
        "hottest_quantiles": None if ranked is None else quantiles(ranked),
        "cpu_mean": round(demand.cpu.mean(), 3),
        "cpu_percentile": round(demand.cpu.percentile(options.percentile), 3),
        "cpu_peak": round(demand.cpu.peak(), 3),
        "hottest_thread": None if hottest is None else round(hottest, 3),
        "memory_peak_bytes": demand.counts.peak_bytes,
        "throttled_s": round(demand.counts.throttled_s, 3),
        "pressure": pressure(demand.counts),
        "run_queue": run_queue(demand.waits),
        "reclaimed_core_s": round(whole.reclaimed_core_s, 3),
        "freed_core_s": round(whole.freed_core_s, 3),
        "startup_s": startup.cpu.seconds,
        "startup_cpu_peak": round(startup.cpu.peak(), 3),
        "startup_memory_peak_bytes": startup.peak_bytes(),
    }
