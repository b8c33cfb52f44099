"""The rules for the CPU demand of a workload: docs/power.md has them in order."""

from attrs import evolve

from temper_plugin_power.classifier.demands import Demand, Judgement
from temper_plugin_power.classifier.evidence import verdicts
from temper_plugin_power.classifier.signals import Signals

UNKNOWN = Demand("medium", "mixed", "medium")
"""The judgement of a workload without any measurement."""
HIGH_PCT = 75
MEDIUM_PCT = 30
COMPUTE_PCT = 65
SENSITIVE_PCT = 70
PRESSED_PCT = 50
STALLED_PCT = 60
IDLE_PCT = 20
COMPUTE_RATIO = 0.70
MEMORY_RATIO = 0.40


def judge_cpu(signals: Signals) -> Judgement:
    """Return the CPU demand by utilisation, then energy, then better evidence."""
    judgement = _by_energy(_by_utilisation(signals), signals)
    for verdict in verdicts(signals):
        judgement = judgement.changed(
            verdict.reason, bound=verdict.bound, cap_sensitivity=verdict.cap_sensitivity
        )
    return judgement


def _by_utilisation(signals: Signals) -> Judgement:
    util = signals.cpu_util_pct
    if util is None:
        return Judgement(
            evolve(UNKNOWN, util_pct=None), ("cpu-util unknown (no request, no limit)",)
        )
    return _with_bound(_with_intensity(util), util, signals)


def _with_intensity(util: float) -> Judgement:
    usual = Judgement(evolve(UNKNOWN, util_pct=util))
    if util >= HIGH_PCT:
        return usual.changed(f"cpu-intensity=high (util {util:.0f}%≥{HIGH_PCT}%)", intensity="high")
    if util >= MEDIUM_PCT:
        return usual.changed(f"cpu-intensity=medium (util {util:.0f}%)")
    return usual.changed(f"cpu-intensity=low (util {util:.0f}%<{MEDIUM_PCT}%)", intensity="low")


def _with_bound(judgement: Judgement, util: float, signals: Signals) -> Judgement:
    """Return *judgement* with the bound of the first rule that matches."""
    pressure = signals.memory_pressure_pct
    if signals.is_gpu_dominant:
        return judgement.changed("cpu-bound=mixed (GPU dominant)", cap_sensitivity="low")
    if util > COMPUTE_PCT and pressure < PRESSED_PCT:
        return _compute(judgement, util)
    if pressure > PRESSED_PCT and util < STALLED_PCT:
        return judgement.changed(
            f"cpu-bound=memory (mem-pressure {pressure:.0f}%>{PRESSED_PCT}%)",
            bound="memory",
            cap_sensitivity="low",
        )
    if util < IDLE_PCT:
        return judgement.changed(
            f"cpu-bound=io (util <{IDLE_PCT}%)", bound="io", cap_sensitivity="low"
        )
    return judgement


def _compute(judgement: Judgement, util: float) -> Judgement:
    if util > SENSITIVE_PCT:
        return judgement.changed(
            f"cpu-bound=compute, cap-sensitivity=high (util {util:.0f}%>{SENSITIVE_PCT}%)",
            bound="compute",
            cap_sensitivity="high",
        )
    return judgement.changed("cpu-bound=compute (high CPU, low mem pressure)", bound="compute")


def _by_energy(judgement: Judgement, signals: Signals) -> Judgement:
    """Return *judgement*, overridden where energy contradicts it."""
    if signals.is_energy_shared:
        return judgement.changed("energy: cpu-bound unknown (zones shared by CPU time)")
    if not signals.has_energy:
        return judgement
    compute, memory = signals.cpu_bound_ratio, signals.memory_bound_ratio
    bound = judgement.demand.bound
    if compute > COMPUTE_RATIO and bound != "compute":
        return judgement.changed(
            f"kepler override: cpu-bound=compute (energy ratio {compute:.2f}>{COMPUTE_RATIO:.2f})",
            bound="compute",
            cap_sensitivity="high",
        )
    if memory > MEMORY_RATIO and bound != "memory":
        return judgement.changed(
            f"kepler override: cpu-bound=memory (mem-energy ratio {memory:.2f}>{MEMORY_RATIO:.2f})",
            bound="memory",
            cap_sensitivity="low",
        )
    return judgement
