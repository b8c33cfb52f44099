"""The rules for the GPU demand of a workload: docs/power.md has them in order."""

from temper_plugin_power.classifier.demands import Demand, Judgement
from temper_plugin_power.classifier.signals import Signals

UNUSED = Demand("none", "none", "none")
HIGH_PCT = 70
MEDIUM_PCT = 25
COMPUTE_PCT = 40
PRESSED_PCT = 60


def judge_gpu(signals: Signals) -> Judgement:
    """Return the GPU demand by utilisation, if there is a trace of GPU work."""
    util = signals.gpu_util_pct
    if not (util > 0 or (signals.has_kepler and signals.gpu_energy_j > 0)):
        return Judgement(UNUSED)
    intensity, reason = _intensity(util)
    bound = _bound(util, signals.memory_pressure_pct)
    return Judgement(Demand(intensity, bound, _sensitivity(intensity, bound), util), (reason,))


def _intensity(util: float) -> tuple[str, str]:
    if util >= HIGH_PCT:
        return "high", f"gpu-intensity=high (util {util:.0f}%≥{HIGH_PCT}%)"
    if util >= MEDIUM_PCT:
        return "medium", f"gpu-intensity=medium (util {util:.0f}%)"
    return "low", f"gpu-intensity=low (util {util:.0f}%<{MEDIUM_PCT}%)"


def _bound(util: float, memory_pressure_pct: float) -> str:
    if memory_pressure_pct > PRESSED_PCT:
        return "memory"
    return "compute" if util > COMPUTE_PCT else "mixed"


def _sensitivity(intensity: str, bound: str) -> str:
    if intensity == "low":
        return "low"
    return "high" if (intensity, bound) == ("high", "compute") else "medium"
