"""Reads WorkloadProfile, NodeTwin and NodeHardware objects into the records of the formulas."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from temper_plugin_power.classifier.demands import Demand
from temper_plugin_power.classifier.hints import CLASSES
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.operating.twin import Hardware, Twin
from temper_plugin_power.resources.fields import flag_at, number_at, text_at, value_at
from temper_plugin_power.workloads.owners import Workload

Object = Mapping[str, Any]
MOST_HINTS, LONGEST_HINT = 64, 64
CUT = 254
"""Characters of a name that are kept, one more than any object may have. Writers of one namespace
could fill the memory of readers of all."""


def workload_at(document: Object) -> Workload:
    """Return the workload that a WorkloadProfile is about."""
    namespace = text_at(document, "metadata.namespace")
    kind, name = (text_at(document, f"spec.workloadRef.{key}") for key in ("kind", "name"))
    return Workload(namespace, kind[:CUT], name[:CUT])


def profile_at(document: Object) -> PowerProfile:
    """Return the profile of a WorkloadProfile. A field that is absent is not known."""
    written = text_at(document, "status.criticality.class")
    hints = value_at(document, "status.hints")
    return PowerProfile(
        workload_class=written if written in CLASSES else "standard",
        reschedulable=flag_at(document, "status.migratability.reschedulable"),
        cpu=_demand_at(document, "status.cpu"),
        gpu=_demand_at(document, "status.gpu"),
        reason=text_at(document, "status.classificationReason"),
        confidence=number_at(document, "status.confidence"),
        hints=_hints(hints) if isinstance(hints, list) else None,
    )


def twin_at(document: Object) -> Twin:
    """Return the state of a NodeTwin."""
    status = value_at(document, "status")
    return Twin(
        schedulable_class=text_at(status, "schedulableClass")[:CUT] or "unknown",
        headroom=number_at(status, "predictedPowerHeadroomScore"),
        cooling_stress=number_at(status, "predictedCoolingStressScore"),
        psu_stress=number_at(status, "predictedPsuStressScore"),
        cpu_pct=number_at(status, "effectiveCapState.cpuPct"),
        gpu_pct=number_at(status, "effectiveCapState.gpuPct"),
        density=number_at(status, "hardwareDensityScore"),
        pue=number_at(status, "estimatedPUE"),
        measured_pue=number_at(status, "measuredPUE") or None,
    )


def hardware_at(document: Object) -> Hardware:
    """Return the hardware of a NodeHardware."""
    status = value_at(document, "status")
    return Hardware(
        sockets=int(number_at(status, "cpu.sockets")),
        cores=int(number_at(status, "cpu.totalCores")),
        max_watts_per_socket=number_at(status, "cpu.capRange.maxWattsPerSocket"),
        has_gpu=flag_at(status, "gpu.present"),
        gpus=int(number_at(status, "gpu.count")),
        max_watts_per_gpu=number_at(status, "gpu.capRangePerGpu.maxWatts"),
        min_watts_per_socket=number_at(status, "cpu.capRange.minWattsPerSocket"),
        min_watts_per_gpu=number_at(status, "gpu.capRangePerGpu.minWatts"),
    )


def age_s(document: Object, now: datetime) -> float | None:
    """Return the seconds since a NodeTwin was updated, None if that is not known."""
    try:
        updated = datetime.fromisoformat(text_at(document, "status.lastUpdated"))
    except ValueError:
        return None
    return (now - updated.replace(tzinfo=updated.tzinfo or UTC)).total_seconds()


def node_name(document: Object) -> str:
    """Return the node that an object is about."""
    return text_at(document, "spec.nodeName") or text_at(document, "metadata.name")


def _hints(hints: list[Any]) -> tuple[str, ...]:
    return tuple(str(each)[:LONGEST_HINT] for each in hints[:MOST_HINTS])


def _demand_at(document: Object, path: str) -> Demand:
    part = value_at(document, path)
    return Demand(
        intensity=text_at(part, "intensity")[:CUT],
        bound=text_at(part, "bound")[:CUT],
        cap_sensitivity=text_at(part, "capSensitivity")[:CUT],
        util_pct=number_at(part, "avgUtilizationPct"),
    )
