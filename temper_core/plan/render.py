"""Render a plan as the engine's configuration, and as the document of ``docs/plan-contract.md``."""

import json
from typing import Any

from attrs import evolve

from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.steering import SYSTEM
from temper_core.records.tiers import LayerKind

SCHEMA_VERSION = 1
UNMATCHED = "unmatched"
"""The last layer. The engine requires it to have no conditions. A steered plan leaves it empty."""

OPEN_UTIL_RANGE = (0.5, 0.8)


def render_engine(plan: LayerPlan) -> str:
    """Return the configuration for scx_layered: canonical JSON, one layer per line.

    It holds nothing of the pods but the matchers, so equal layers give equal bytes.
    """
    written = (_engine_layer(layer) for layer in engine_layers(plan))
    lines = [json.dumps(layer, separators=(",", ":")) for layer in written]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def engine_layers(plan: LayerPlan) -> tuple[Layer, ...]:
    """Return the layers as the engine receives them.

    CPUs that no other layer may own belong to the Open layer, which is therefore Grouped to the
    engine. An unowned CPU stays with the first always busy Grouped layer that runs on it, and an
    Open layer would starve. If the system layer owns nothing, this is left out, because it would
    have no CPU.
    A steered plan's Open layer has a hint, so ``unmatched`` follows it. ``unmatched`` preempts,
    because the verifier rejects all four kinds of dispatch loop together.
    """
    *others, shared = plan.layers
    left_over = _left_over(plan)
    last = evolve(shared, name=UNMATCHED, matches=((),), preempt=True)
    open_layer = _owning(shared, left_over) if left_over else shared
    return (*others, open_layer, last) if plan.is_steered else (*others, open_layer)


def _owning(layer: Layer, cpus: int) -> Layer:
    return evolve(
        layer, kind=LayerKind.GROUPED, cpus_min=cpus, cpus_max=cpus, util_range=OPEN_UTIL_RANGE
    )


def _left_over(plan: LayerPlan) -> int:
    """Count the CPUs of whole cores that no layer may own. 0 if the system layer needs them."""
    system = plan.layer_named(SYSTEM)
    if system is None or not system.cpus_max:
        return 0
    unit = len(plan.machine.siblings[0])
    owned = sum(layer.cpus_max or 0 for layer in plan.layers)
    return max(0, len(plan.machine.cpus) - owned) // unit * unit


def plan_document(plan: LayerPlan, generation: int = 0) -> dict[str, Any]:
    """Return the plan as ``docs/plan-contract.md`` specifies it, ready for JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "generation": generation,
        "steered": plan.is_steered,
        "machine": machine_summary(plan.machine),
        "layers": [
            {**_layer_document(layer), "hint": plan.hints.get(layer.name)} for layer in plan.layers
        ],
        "assignments": [_assignment_document(assignment) for assignment in plan.assignments],
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
    noun = "tier" if layer.name == layer.tier.value else "thread group of tier"
    return f"{noun} {layer.tier}{demoted}"


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
