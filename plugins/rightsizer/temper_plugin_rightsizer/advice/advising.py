"""Advice for one container."""

from temper_plugin_rightsizer.advice.cpu import advise_cpu
from temper_plugin_rightsizer.advice.memory import advise_memory
from temper_plugin_rightsizer.advice.options import USUAL, AdviceOptions
from temper_plugin_rightsizer.advice.records import Advice, Confidence, Resources
from temper_plugin_rightsizer.demand.interval import IntervalDemand

HOUR_S = 3600
FULL_S = 6 * HOUR_S


def advise(demand: IntervalDemand, current: Resources, options: AdviceOptions = USUAL) -> Advice:
    """Return advice for a container with *demand* and the *current* resources."""
    cpu = advise_cpu(demand, current.cpu_limit_millis, options)
    memory = advise_memory(demand, current.memory_limit_bytes, options)
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
        reasons=(*cpu.reasons, *memory.reasons, *(("keep as it is",) if keeps else ())),
    )


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
