"""Advice for one container."""

from temper_plugin_rightsizer.advice.cpu import advise_cpu
from temper_plugin_rightsizer.advice.memory import advise_memory, mib
from temper_plugin_rightsizer.advice.options import USUAL, AdviceOptions
from temper_plugin_rightsizer.advice.pressure import pressure_reasons
from temper_plugin_rightsizer.advice.records import KEEP, Advice, Confidence, Resources
from temper_plugin_rightsizer.advice.waits import run_queue_reasons
from temper_plugin_rightsizer.demand.growth import Growth
from temper_plugin_rightsizer.demand.interval import IntervalDemand

MINUTE_S = 60
HOUR_S = 3600
FULL_S = 6 * HOUR_S


def advise(
    demand: IntervalDemand,
    current: Resources,
    options: AdviceOptions = USUAL,
    leak: Growth | None = None,
) -> Advice:
    """Return advice for a container with *demand* and the *current* resources.

    Start-ups set no request, unless they take most of the time. Memory that grows as *leak* sets
    none either.
    """
    startup_reasons = _startup_reasons(demand)
    day_before = _judged_before(demand)
    demand = judged(demand)
    cpu = advise_cpu(demand, current.cpu_limit_millis, options, day_before)
    memory = advise_memory(demand, current, options, leak)
    wanted = Resources(
        cpu_request_millis=_kept(cpu.request_millis, current.cpu_request_millis, options),
        cpu_limit_millis=cpu.limit_millis,
        memory_request_bytes=_kept(memory.request_bytes, current.memory_request_bytes, options),
        memory_limit_bytes=memory.limit_bytes,
    )
    keeps = wanted == current
    return Advice(
        verdict=cpu.verdict,
        current=current,
        recommended=wanted,
        confidence=confidence(demand.cpu.seconds),
        learned_s=demand.cpu.seconds,
        keeps=keeps,
        hot_threads=cpu.hot_threads,
        hot_cores=cpu.hot_cores,
        reasons=(
            *cpu.reasons,
            *memory.reasons,
            *_unwatched_reasons(demand),
            *run_queue_reasons(
                demand.waits, cpu.hot_cores, throttled=demand.counts.throttled_s > 0
            ),
            *pressure_reasons(demand.counts),
            *startup_reasons,
            *((KEEP,) if keeps else ()),
        ),
        leak=memory.leak,
    )


def judged(demand: IntervalDemand) -> IntervalDemand:
    """Return the demand that advice follows from: all of it, if it is mostly start-up."""
    return demand.whole() if demand.is_mostly_startup else demand


def _judged_before(demand: IntervalDemand) -> IntervalDemand | None:
    """Return what counts of the day before: the start-ups in it only if those of *demand* do."""
    before = demand.day_before
    if before is not None and demand.is_mostly_startup:
        before = before.whole()
    return before if before is not None and before.cpu.seconds else None


def _startup_reasons(demand: IntervalDemand) -> tuple[str, ...]:
    startup = demand.startup
    if startup is None:
        return ()
    used = f"up to {startup.cpu.peak():.2f} CPUs and {mib(startup.peak_bytes())}"
    time = f"{startup.cpu.seconds / MINUTE_S:.0f} min of start-up used {used}"
    if demand.is_mostly_startup:
        return (f"{time}: it counts, as the container ran for less time afterwards",)
    return (f"{time}: it sets no request",)


def _unwatched_reasons(demand: IntervalDemand) -> tuple[str, ...]:
    unwatched_s = demand.counts.unwatched_s
    if unwatched_s < MINUTE_S:
        return ()
    measured = f"{unwatched_s / HOUR_S:.1f} of {demand.cpu.seconds / HOUR_S:.1f} h"
    return (f"threads are not known in {measured}, which a Prometheus has filled in",)


def confidence(learned_s: int) -> Confidence:
    """Return the confidence after *learned_s* seconds of measurements."""
    if learned_s < HOUR_S:
        return Confidence.LOW
    return Confidence.MEDIUM if learned_s < FULL_S else Confidence.HIGH


def _kept(wanted: int | None, current: int | None, options: AdviceOptions) -> int | None:
    """Return *current* where *wanted* is close to it."""
    if wanted is None or not current:
        return wanted
    return current if abs(wanted - current) <= options.keep_within * current else wanted
