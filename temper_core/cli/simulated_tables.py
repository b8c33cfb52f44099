"""A simulation as JSON, and as tables."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import click

from temper_core.cli.plan_difference import WORDS
from temper_core.cli.planning import cpus_text
from temper_core.console import folded, plain_table, results_console, shown
from temper_core.plain_json import plain_value
from temper_core.plan import plan_document
from temper_core.plan.capacity import counted
from temper_core.plan.change import PlanChange, layers_by_pod
from temper_core.plan.shapes import shape_of
from temper_core.records.lint import Violation

if TYPE_CHECKING:
    from rich.console import Console

    from temper_core.records.layers import Layer
    from temper_core.records.plans import LayerPlan
    from temper_core.rehearsal.simulation import Simulation, StandingViolation

SCHEMA_VERSION = 1
FLAGS = ("exclusive", "protected", "preempt", "demoted")
MOST_THREADS = 30
MOST_REASONS = 3
"""Reasons of one change in the table; JSON has all."""

Json = dict[str, Any]


def simulation_document(simulation: "Simulation") -> Json:
    """Return the simulation ready for JSON. ``docs/recordings.md`` describes the keys."""
    from temper_core.observe.moments import rfc3339

    return {
        "schema_version": SCHEMA_VERSION,
        "recording": {
            "node": simulation.head.node,
            "temper": simulation.head.temper,
            "source": simulation.head.source,
            "began": rfc3339(simulation.began),
            "seconds": round(simulation.seconds, 3),
            "looks": simulation.looks,
            "modes": list(simulation.modes),
        },
        "remarks": list(simulation.remarks),
        "changes": [
            {"at_s": round(step.at_s, 3), "pods": step.pods, **_change(step.change)}
            for step in simulation.steps
        ],
        "plan": plan_document(simulation.plan) if simulation.plan else None,
        "pods": _pods(simulation.plan) if simulation.plan else [],
        "shape": str(shape_of(simulation.plan)) if simulation.plan else None,
        "shape_verdict": simulation.verdict.value if simulation.verdict else None,
        "invariants": list(simulation.invariants),
        "violations": [_violation(stood) for stood in simulation.violations],
        "difference": _change(simulation.difference) if simulation.difference else None,
        "threads_elsewhere": [attrs.asdict(thread) for thread in simulation.threads],
    }


def print_simulation(simulation: "Simulation") -> None:
    """Print the simulation as tables."""
    console = results_console()
    _print_head(console, simulation)
    _print_steps(console, simulation)
    if simulation.plan is not None:
        _print_plan(console, simulation.plan)
        console.print(f"\nshape    {simulation.verdict}: {shape_of(simulation.plan)}")
    _print_difference(console, simulation)
    _print_violations(console, simulation)


def _change(change: PlanChange) -> Json:
    return {
        "change": change.kind.value,
        "reasons": [
            {
                "code": reason.code.value,
                "layer": reason.layer,
                "urgent": reason.is_urgent,
                "message": reason.message,
            }
            for reason in change.reasons
        ],
        "moves": [
            {"pod": move.pod, "before": list(move.before), "after": list(move.after)}
            for move in change.moves
        ],
    }


def _pods(plan: "LayerPlan") -> list[Json]:
    layers = layers_by_pod(plan)
    return [
        {
            "pod": assignment.pod.key,
            "uid": assignment.pod.uid,
            "tier": assignment.tier.value,
            "reason": assignment.reason,
            "profile": assignment.profile.profile.id if assignment.profile else None,
            "profile_reason": assignment.profile_reason,
            "layers": list(layers.get(assignment.pod.key, ())),
        }
        for assignment in plan.assignments
    ]


def _violation(stood: "StandingViolation") -> Json:
    violation: Violation = stood.violation
    return {
        "invariant": violation.invariant,
        "severity": violation.severity.value,
        "subject": violation.subject,
        "message": violation.message,
        "fix": violation.fix,
        "evidence": plain_value(violation.evidence),
        "plugin": violation.plugin,
        "from_s": round(stood.from_s, 3),
        "until_s": None if stood.until_s is None else round(stood.until_s, 3),
        "looks": stood.looks,
    }


def _print_head(console: "Console", simulation: "Simulation") -> None:
    looks, modes = counted(simulation.looks, "look"), ", ".join(simulation.modes)
    by = "an agent" if simulation.head.source == "agent" else "an observer"
    node = shown(simulation.head.node)
    console.print(f"{node}  {looks} in {simulation.seconds:.0f} s, recorded by {by} ({modes})")
    for remark in simulation.remarks:
        console.print(f"remark   {shown(remark)}")


def _print_steps(console: "Console", simulation: "Simulation") -> None:
    if not simulation.steps:
        return
    rows = (
        (
            f"{step.at_s:.1f}",
            step.pods,
            step.change.kind.value,
            len(step.change.moves),
            _reasons(step.change) or WORDS[step.change.kind],
        )
        for step in simulation.steps
    )
    _print_table(console, ("second", "pods", "change", "pods that move", "why"), rows)


def _reasons(change: PlanChange) -> str:
    texts = [
        f"{reason.layer}: {reason.message}" if reason.layer else reason.message
        for reason in change.reasons
    ]
    more = len(texts) - MOST_REASONS
    return "; ".join(texts[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _print_plan(console: "Console", plan: "LayerPlan") -> None:
    _print_table(
        console,
        ("layer", "kind", "cpus", "flags", "slice", "weight", "pods", "why"),
        map(_layer_row, plan.layers),
    )
    pods = (
        (pod["pod"], pod["tier"], ", ".join(pod["layers"]), pod["profile"], _why(pod))
        for pod in _pods(plan)
    )
    _print_table(console, ("pod", "tier", "layers", "profile", "why"), pods)
    notes = ((note.code, note.subject, note.message) for note in plan.notes)
    _print_table(console, ("note", "subject", "message"), notes)


def _why(pod: Mapping[str, Any]) -> str:
    return "; ".join(filter(None, (pod["reason"], pod["profile_reason"])))


def _layer_row(layer: "Layer") -> tuple[object, ...]:
    groups = f" +{len(layer.group_members)} by group" if layer.group_members else ""
    return (
        layer.name,
        layer.kind.value,
        cpus_text(layer.cpus_min, layer.cpus_max),
        " ".join(flag for flag in FLAGS if getattr(layer, flag)),
        f"{layer.slice_us / 1000:g} ms",
        layer.weight,
        f"{len(layer.members)}{groups}",
        layer.reason,
    )


def _print_difference(console: "Console", simulation: "Simulation") -> None:
    if simulation.difference is None:
        console.print("plan     the one that was recorded")
    else:
        why = _reasons(simulation.difference) or WORDS[simulation.difference.kind]
        pods = counted(len(simulation.difference.moves), "pod")
        console.print(shown(f"plan     another than was recorded: {why}; {pods} in other layers"))
    rows = (
        (thread.owner, thread.comm, thread.threads, thread.cpu_used, thread.before, thread.after)
        for thread in simulation.threads[:MOST_THREADS]
    )
    columns = ("owner", "threads named", "count", "cpus used", "recorded", "simulated")
    _print_table(console, columns, rows)
    more = len(simulation.threads) - MOST_THREADS
    if more > 0:
        console.print(f"and {more} more")


def _print_violations(console: "Console", simulation: "Simulation") -> None:
    if not simulation.violations:
        judged = f"No violation stood; judged were {', '.join(simulation.invariants)}."
        click.echo(f"\n{folded(judged)}")
        return
    rows = (
        (
            stood.violation.invariant,
            stood.violation.subject,
            f"{stood.from_s:.1f}",
            "the end" if stood.until_s is None else f"{stood.until_s:.1f}",
            stood.violation.message,
            stood.violation.fix,
        )
        for stood in simulation.violations
    )
    _print_table(console, ("invariant", "subject", "from", "until", "what", "what to do"), rows)


def _print_table(
    console: "Console", columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]
) -> None:
    """Print a table with a blank line above, or nothing without rows."""
    table = plain_table(*columns)
    for row in rows:
        table.add_row(*("-" if cell in ("", None) else shown(cell) for cell in row))
    if table.row_count:
        console.print()
        console.print(table)
