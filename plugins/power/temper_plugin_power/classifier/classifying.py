"""From hints and signals to a power profile. docs/power.md has the rules."""

from temper_plugin_power.classifier.cpu import COMPUTE_PCT, PRESSED_PCT, UNKNOWN, judge_cpu
from temper_plugin_power.classifier.demands import Judgement
from temper_plugin_power.classifier.evidence import verdicts
from temper_plugin_power.classifier.gpu import UNUSED, judge_gpu
from temper_plugin_power.classifier.hints import Hints
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.classifier.signals import Signals
from temper_plugin_power.classifier.traits import (
    NO_TRAITS,
    ThreadTraits,
    with_cpu_traits,
    with_gpu_traits,
)

NO_METRICS = "hints only (no metrics available)"
DERIVING_GPU_PCT = 50
BASE_TENTHS, CLASS_TENTHS, SENSITIVITY_TENTHS = 3, 2, 1
UTILISATION_TENTHS, EVIDENCE_TENTHS = 2, 2
TENTHS = 10


def classify(
    hints: Hints,
    signals: Signals | None,
    *,
    derives_class: bool = False,
    traits: ThreadTraits = NO_TRAITS,
) -> PowerProfile:
    """Return the profile of a workload. Without *signals* it follows from the hints alone.

    *hints* come before *traits*, and those before *signals*. The confidence counts hints and
    signals only.

    With *derives_class* a workload without a hint of its class is of class performance if it drives
    CPU or GPU so hard that a power cap would slow it.
    """
    if signals is None:
        cpu, gpu = Judgement(UNKNOWN, (NO_METRICS,)), Judgement(UNUSED)
    else:
        cpu, gpu = judge_cpu(signals), judge_gpu(signals)
    cpu = _with_cpu_hint(with_cpu_traits(cpu, traits), hints)
    gpu = _with_gpu_hint(with_gpu_traits(gpu, traits), hints)
    movable = traits.reschedulable if hints.reschedulable is None else hints.reschedulable
    ignored = (
        () if hints.ignored_class is None else (f'workload-class "{hints.ignored_class}" ignored',)
    )
    return PowerProfile(
        workload_class=_class(hints, traits, signals if derives_class else None),
        reschedulable=bool(movable),
        cpu=cpu.demand,
        gpu=gpu.demand,
        reason="; ".join((*cpu.reasons, *gpu.reasons, *ignored)),
        confidence=_confidence(hints, signals),
        hints=tuple(dict.fromkeys((*hints.paths, *traits.paths))),
    )


def _with_cpu_hint(judgement: Judgement, hints: Hints) -> Judgement:
    value = hints.cpu_sensitivity
    if value is None:
        return judgement
    reason = f"cpu-cap-sensitivity={value} (annotation override)"
    return judgement.changed(reason, cap_sensitivity=value)


def _with_gpu_hint(judgement: Judgement, hints: Hints) -> Judgement:
    """Return *judgement* with the annotated sensitivity, which implies GPU work by itself."""
    value = hints.gpu_sensitivity
    if value is None:
        return judgement
    is_news = judgement.demand.intensity == "none" != value
    intensity = "medium" if is_news else judgement.demand.intensity
    reason = f"gpu-cap-sensitivity={value} (annotation override)"
    return judgement.changed(reason, intensity=intensity, cap_sensitivity=value)


def _class(hints: Hints, traits: ThreadTraits, signals: Signals | None) -> str:
    said = hints.workload_class or hints.label_class or traits.workload_class
    if said is not None or signals is None:
        return said or "standard"
    util, gpu_util = signals.cpu_util_pct or 0.0, signals.gpu_util_pct
    drives_gpu = signals.is_gpu_dominant or gpu_util > DERIVING_GPU_PCT
    drives_cpu = util > COMPUTE_PCT and signals.memory_pressure_pct < PRESSED_PCT
    return "performance" if drives_gpu or drives_cpu else "standard"


def _confidence(hints: Hints, signals: Signals | None) -> float:
    """Return the sum of the terms. It is exact, as they are added in tenths."""
    if signals is None:
        return BASE_TENTHS / TENTHS
    has_sensitivity = (hints.cpu_sensitivity or hints.gpu_sensitivity) is not None
    has_evidence = signals.has_energy or any(verdicts(signals))
    tenths = (
        BASE_TENTHS
        + CLASS_TENTHS * (hints.workload_class == "performance")
        + SENSITIVITY_TENTHS * has_sensitivity
        + UTILISATION_TENTHS * bool(signals.cpu_util_pct)
        + EVIDENCE_TENTHS * has_evidence
    )
    return min(tenths, TENTHS) / TENTHS
