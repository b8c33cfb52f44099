"""Why a workload has its profile, and what placement makes of it: ``temper power explain``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.defaults import MIN_CONFIDENCE
from temper_plugin_power.operating.caps import CapShares
from temper_plugin_power.operating.guard import MOVABLE
from temper_plugin_power.operating.policies import weight
from temper_plugin_power.placing.scoring import SENSITIVITY
from temper_plugin_power.placing.subjects import Choices
from temper_plugin_power.views.profiles import ProfileRow
from temper_plugin_power.views.tier_suggestions import suggestion

HAND_MADE = "made by hand: every field is explicit"
ANNOTATED, TRAIT, DERIVED, DEFAULT = "annotation", "thread profile", "derived", "default"


def explain(
    row: ProfileRow, *, without_tier: bool, min_confidence: float = MIN_CONFIDENCE
) -> Mapping[str, Any]:
    """Return the fields with their sources and consumers, and the rules that decided."""
    profile = row.profile
    workload = row.workload
    return {
        "workload": {"namespace": workload.namespace, "kind": workload.kind, "name": workload.name},
        "fields": list(_fields(row, min_confidence)),
        "rules": [each for each in profile.reason.split("; ") if each],
        "evidence": dict(row.evidence),
        "confidence": profile.confidence,
        "hints": HAND_MADE if profile.hints is None else list(profile.hints),
        "consumers": list(_consumers(profile, min_confidence)),
        "suggestions": [suggestion(workload)] if without_tier else [],
    }


def _fields(row: ProfileRow, min_confidence: float) -> Iterator[Mapping[str, Any]]:
    profile, traits = row.profile, row.traits
    values: Sequence[tuple[str, object]] = (
        ("criticality.class", profile.workload_class),
        (MOVABLE, profile.reschedulable),
        ("cpu.intensity", profile.cpu.intensity),
        ("cpu.bound", profile.cpu.bound),
        ("cpu.capSensitivity", profile.cpu.cap_sensitivity),
        ("gpu.intensity", profile.gpu.intensity),
        ("gpu.bound", profile.gpu.bound),
        ("gpu.capSensitivity", profile.gpu.cap_sensitivity),
    )
    for path, value in values:
        # The class and whether a workload may be moved follow from hints, never from metrics.
        is_hint_only = path in ("criticality.class", MOVABLE)
        derived = DEFAULT if is_hint_only else DERIVED
        explicit = TRAIT if path in traits else ANNOTATED
        yield {
            "field": path,
            "value": value,
            "source": explicit if profile.is_explicit(path) else derived,
            "counts": is_hint_only or profile.counts(path, min_confidence),
        }


def _consumers(profile: PowerProfile, min_confidence: float) -> Iterator[Mapping[str, str]]:
    is_performance = profile.workload_class == "performance"
    yield {
        "consumer": "filter",
        "effect": "kept off eco and draining nodes" if is_performance else "may be on any node",
    }
    yield {"consumer": "score", "effect": _penalty(profile, min_confidence)}
    yield {"consumer": "guard", "effect": _guarded(profile)}
    yield {"consumer": "policy", "effect": _weight(profile, min_confidence)}


def _penalty(profile: PowerProfile, min_confidence: float) -> str:
    if not profile.counts("cpu.capSensitivity", min_confidence):
        return f"no penalty: derived with a confidence below {min_confidence:g}"
    share = SENSITIVITY.get(profile.cpu.cap_sensitivity, 0.0)
    pct = CapShares().cpu_eco_pct
    points = Choices().cap_penalty_cpu * share * (1 - pct / 100)
    return f"loses {points:.1f} points on a node whose CPUs are capped to {pct:g} %"


def _guarded(profile: PowerProfile) -> str:
    if profile.workload_class == "performance":
        return "keeps its node from becoming an eco node: class performance"
    if not profile.reschedulable and profile.is_explicit(MOVABLE):
        return "keeps its node from becoming an eco node: not reschedulable"
    return "does not keep its node from becoming an eco node"


def _weight(profile: PowerProfile, min_confidence: float) -> str:
    if profile.workload_class != "performance":
        return "asks for no performance node"
    return f"counts as {float(weight(profile, min_confidence)):g} pods by its intensity"
