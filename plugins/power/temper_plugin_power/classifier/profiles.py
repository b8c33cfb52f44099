"""The power profile of a workload, and the status of the Kubernetes object that holds it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

from temper_plugin_power.classifier.demands import Demand

HIGH_CONFIDENCE = 0.7
MEDIUM_CONFIDENCE = 0.5
BANDS = {
    "high": "high-confidence",
    "medium": "medium-confidence",
    "low": "low-confidence (hints only)",
}


@frozen
class PowerProfile:
    """The facts of a workload that placement and power caps need: ``WorkloadProfile.status``."""

    workload_class: str
    """performance or standard."""
    reschedulable: bool
    cpu: Demand
    gpu: Demand
    reason: str
    confidence: float
    """From 0 to 1, in tenths."""
    hints: tuple[str, ...] | None
    """JSON paths of the fields that annotations decided. None in a profile that was made by hand,
    all of whose fields are explicit."""

    @property
    def summary(self) -> str:
        """The confidence and the demands in some words."""
        words = [BANDS[band(self.confidence)], f"cpu={self.cpu.intensity}/{self.cpu.bound}"]
        if self.gpu.intensity != "none":
            words.append(f"gpu={self.gpu.intensity}/{self.gpu.bound}")
        return " ".join(words)

    def is_explicit(self, path: str) -> bool:
        """Whether the field at the JSON *path* was annotated or written by hand, not derived."""
        return self.hints is None or path in self.hints

    def counts(self, path: str, min_confidence: float) -> bool:
        """Whether the field at the JSON *path* is explicit, or derived with enough confidence."""
        return self.is_explicit(path) or self.confidence >= min_confidence

    def status(self, at: datetime) -> Mapping[str, Any]:
        """Return the object's status, last updated *at*, which is a time in UTC."""
        hints = {} if self.hints is None else {"hints": list(self.hints)}
        return {
            "criticality": {"class": self.workload_class},
            "migratability": {"reschedulable": self.reschedulable},
            "cpu": _status_of(self.cpu),
            "gpu": _status_of(self.gpu),
            "classificationReason": self.reason,
            "confidence": self.confidence,
            "lastUpdated": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            **hints,
        }


def band(confidence: float) -> str:
    """Return the band of a confidence: high, medium or low."""
    if confidence >= HIGH_CONFIDENCE:
        return "high"
    return "medium" if confidence >= MEDIUM_CONFIDENCE else "low"


def _status_of(demand: Demand) -> Mapping[str, Any]:
    known = {} if demand.util_pct is None else {"avgUtilizationPct": demand.util_pct}
    return {
        "intensity": demand.intensity,
        "bound": demand.bound,
        **known,
        "capSensitivity": demand.cap_sensitivity,
    }
