"""Reads cases: hints and metrics of workloads, as an audit of the rules writes them down."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen
from attrs.validators import ge

from temper_core import DocumentError, fit, read_json
from temper_plugin_power.classifier.hints import Hints, read_hints
from temper_plugin_power.classifier.signals import Signals


@frozen
class CaseMetrics:
    """The metrics of a case, taken as given. Percentages, ratios, and joules over the window."""

    cpuUtilPct: float = field(default=0.0, validator=ge(0))
    memoryPressurePct: float = field(default=0.0, validator=ge(0))
    gpuUtilPct: float = field(default=0.0, validator=ge(0))
    cpuBoundRatio: float = field(default=0.0, validator=ge(0))
    memoryBoundRatio: float = field(default=0.0, validator=ge(0))
    keplerUsed: bool = False
    totalEnergyJ: float = field(default=0.0, validator=ge(0))
    cpuEnergyJ: float = field(default=0.0, validator=ge(0))
    dramEnergyJ: float = field(default=0.0, validator=ge(0))
    gpuEnergyJ: float = field(default=0.0, validator=ge(0))
    gpuDominant: bool = False

    def signals(self) -> Signals:
        """Return them by the names of the rules."""
        return Signals(
            cpu_util_pct=self.cpuUtilPct,
            memory_pressure_pct=self.memoryPressurePct,
            gpu_util_pct=self.gpuUtilPct,
            cpu_bound_ratio=self.cpuBoundRatio,
            memory_bound_ratio=self.memoryBoundRatio,
            has_kepler=self.keplerUsed,
            total_energy_j=self.totalEnergyJ,
            gpu_energy_j=self.gpuEnergyJ,
            is_gpu_dominant=self.gpuDominant,
        )


@frozen
class CaseDocument:
    """A case as it is written."""

    annotations: Mapping[str, str] | None = None
    labels: Mapping[str, str] | None = None
    metrics: CaseMetrics | None = None


@frozen
class Case:
    """The hints and the signals of one workload."""

    hints: Hints
    signals: Signals | None
    """None without metrics."""


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a JSON list, ``-`` for standard input. Raise DocumentError if invalid."""
    raw = read_json(path)
    try:
        documents = fit(raw, tuple[CaseDocument, ...], source=str(path))
    except RecursionError as error:
        raise DocumentError(str(path), ["is nested too deeply"]) from error
    return [_case(document, case) for document, case in zip(documents, raw, strict=True)]


def _case(document: CaseDocument, raw: Mapping[str, Any]) -> Case:
    # An empty table measures nothing, while a zero is a measurement.
    metrics = document.metrics if raw.get("metrics") else None
    hints = read_hints(document.annotations or {}, document.labels or {})
    return Case(hints, None if metrics is None else metrics.signals())
