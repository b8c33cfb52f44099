"""Write a plan as the engine reads it, and as people and machines outside read it."""

import json
from typing import Any

from attrs import evolve

from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, Layer, LayerPlan
from temper_core.records.tiers import LayerKind

SCHEMA_VERSION = 1
UNMATCHED = "unmatched"
"""The engine insists on a last layer without conditions; no thread of a steered plan gets there."""


def render_engine(plan: LayerPlan) -> str:
    """Return the configuration for scx_layered: canonical JSON, one layer per line.

    A steered plan's Open layer has a hint, so the layer ``unmatched`` follows it.

    It says nothing of the pods beyond the matchers, so that what changes no layer changes no byte.
    """
    layers = list(plan.layers)
    if plan.is_steered:
        layers.append(evolve(layers[-1], name=UNMATCHED, matches=((),)))
    lines = [json.dumps(_engine_layer(layer), separators=(",", ":")) for layer in layers]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def plan_document(plan: LayerPlan, generation: int = 0) -> dict[str, Any]:
    """Return the plan as ``docs/plan-contract.md`` promises it, ready for JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "generation": generation,
        "steered": plan.is_steered,
        "machine": machine_summary(plan.machine),
        "layers": [
            {**_layer_document(layer), "hint": plan.hints.get(layer.name)} for layer in plan.layers
        ],
        "assignments": [_assignment_document(each) for each in plan.assignments],
        "notes": [
            {"code": note.code, "subject": note.subject, "message": note.message}
            for note in plan.notes
        ],
    }


def machine_summary(machine: MachineShape) -> dict[str, Any]:
    """Return the counts of a machine that a plan depends on."""
    return {
        "architecture": machine.architecture,
        "cpus": len(machine.cpus),
        "cores": machine.cores,
        "threads_per_core": machine.threads_per_core,
        "sockets": machine.sockets,
        "numa_nodes": machine.numa_nodes,
        "llcs": machine.llcs,
    }


def _engine_layer(layer: Layer) -> dict[str, Any]:
    return {
        "name": layer.name,
        "comment": _comment(layer),
        "matches": _matches(layer),
        "kind": {layer.kind.value: {**_owned(layer), **_common(layer)}},
    }


def _matches(layer: Layer) -> list[list[dict[str, Any]]]:
    return [[{matcher.kind: matcher.value} for matcher in block] for block in layer.matches]


def _owned(layer: Layer) -> dict[str, Any]:
    """Return the options that only layers with CPUs of their own have."""
    if layer.kind is LayerKind.OPEN:
        return {}
    return {
        "util_range": list(layer.util_range or ()),
        "cpus_range": [layer.cpus_min, layer.cpus_max],
        "protected": layer.protected,
    }


def _common(layer: Layer) -> dict[str, Any]:
    return {
        "min_exec_us": 0,
        "preempt": layer.preempt,
        "exclusive": layer.exclusive,
        "slice_us": layer.slice_us,
        "weight": layer.weight,
    }


def _comment(layer: Layer) -> str:
    if layer.name == UNMATCHED:
        return "what the engine wants last; no thread gets here"
    if layer.tier is None:
        return "the node itself" if layer.preempt else "everything else"
    demoted = ", demoted" if layer.demoted else ""
    what = "tier" if layer.name == layer.tier.value else "thread group of tier"
    return f"{what} {layer.tier}{demoted}"


def _layer_document(layer: Layer) -> dict[str, Any]:
    return {
        "name": layer.name,
        "kind": layer.kind.value,
        "tier": layer.tier.value if layer.tier else None,
        "cpus_min": layer.cpus_min,
        "cpus_max": layer.cpus_max,
        "exclusive": layer.exclusive,
        "protected": layer.protected,
        "preempt": layer.preempt,
        "util_range": list(layer.util_range) if layer.util_range else None,
        "slice_us": layer.slice_us,
        "weight": layer.weight,
        "matches": _matches(layer),
        "pods": sorted({*layer.members, *layer.group_members}),
        "group_pods": list(layer.group_members),
        "demoted": layer.demoted,
        "reason": layer.reason,
    }


def _assignment_document(assignment: Assignment) -> dict[str, Any]:
    return {
        "pod": assignment.pod.key,
        "uid": assignment.pod.uid,
        "tier": assignment.tier.value,
        "profile": assignment.profile.profile.id if assignment.profile else None,
        "reason": assignment.reason,
        "profile_reason": assignment.profile_reason,
        "system": assignment.is_system,
    }
