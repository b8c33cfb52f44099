"""A simulation said in JSON, and in tables for people."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import click

from temper_core.cli.plan_difference import WORDS
from temper_core.cli.planning import cpus_text
from temper_core.console import plain_table, results_console, shown
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
"""Of one change, in the table; JSON has all."""

Json = dict[str, Any]


def simulation_document(told: "Simulation") -> Json:
    """Return the simulation ready for JSON. ``docs/recordings.md`` says what each key means."""
    from temper_core.observe.moments import rfc3339

    return {
        "schema_version": SCHEMA_VERSION,
        "recording": {
            "node": told.head.node,
            "temper": told.head.temper,
            "source": told.head.source,
            "began": rfc3339(told.began),
            "seconds": round(told.seconds, 3),
            "looks": told.looks,
            "modes": list(told.modes),
        },
        "remarks": list(told.remarks),
        "changes": [
            {"at_s": round(step.at_s, 3), "pods": step.pods, **_change(step.change)}
            for step in told.steps
        ],
        "plan": plan_document(told.plan) if told.plan else None,
        "pods": _pods(told.plan) if told.plan else [],
        "shape": str(shape_of(told.plan)) if told.plan else None,
        "shape_verdict": told.verdict.value if told.verdict else None,
        "invariants": list(told.invariants),
        "violations": [_violation(each) for each in told.violations],
        "difference": _change(told.difference) if told.difference else None,
        "threads_elsewhere": [attrs.asdict(each) for each in told.threads],
    }


def print_simulation(told: "Simulation") -> None:
    """Print the simulation as tables."""
    console = results_console()
    _print_head(console, told)
    _print_steps(console, told)
    if told.plan is not None:
        _print_plan(console, told.plan)
        console.print(f"\nshape    {told.verdict}: {shape_of(told.plan)}")
    _print_difference(console, told)
    _print_violations(console, told)


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
            "pod": each.pod.key,
            "uid": each.pod.uid,
            "tier": each.tier.value,
            "reason": each.reason,
            "profile": each.profile.profile.id if each.profile else None,
            "profile_reason": each.profile_reason,
            "layers": list(layers.get(each.pod.key, ())),
        }
        for each in plan.assignments
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


def _print_head(console: "Console", told: "Simulation") -> None:
    looks, modes = counted(told.looks, "look"), ", ".join(told.modes)
    by = "an agent" if told.head.source == "agent" else "an observer"
    node = shown(told.head.node)
    console.print(f"{node}  {looks} in {told.seconds:.0f} s, recorded by {by} ({modes})")
    for remark in told.remarks:
        console.print(f"remark   {shown(remark)}")


def _print_steps(console: "Console", told: "Simulation") -> None:
    if not told.steps:
        return
    rows = (
        (
            f"{step.at_s:.1f}",
            step.pods,
            step.change.kind.value,
            len(step.change.moves),
            _reasons(step.change) or WORDS[step.change.kind],
        )
        for step in told.steps
    )
    _print_table(console, ("second", "pods", "change", "pods that move", "why"), rows)


def _reasons(change: PlanChange) -> str:
    told = [
        f"{reason.layer}: {reason.message}" if reason.layer else reason.message
        for reason in change.reasons
    ]
    more = len(told) - MOST_REASONS
    return "; ".join(told[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _print_plan(console: "Console", plan: "LayerPlan") -> None:
    _print_table(
        console,
        ("layer", "kind", "cpus", "flags", "slice", "weight", "pods", "why"),
        map(_layer_row, plan.layers),
    )
    pods = (
        (each["pod"], each["tier"], ", ".join(each["layers"]), each["profile"], _why(each))
        for each in _pods(plan)
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


def _print_difference(console: "Console", told: "Simulation") -> None:
    if told.difference is None:
        console.print("plan     the one that was recorded")
    else:
        why = _reasons(told.difference) or WORDS[told.difference.kind]
        pods = counted(len(told.difference.moves), "pod")
        console.print(shown(f"plan     another than was recorded: {why}; {pods} in other layers"))
    rows = (
        (each.owner, each.comm, each.threads, each.cpu_used, each.before, each.after)
        for each in told.threads[:MOST_THREADS]
    )
    columns = ("owner", "threads named", "count", "cpus used", "recorded", "simulated")
    _print_table(console, columns, rows)
    more = len(told.threads) - MOST_THREADS
    if more > 0:
        console.print(f"and {more} more")


def _print_violations(console: "Console", told: "Simulation") -> None:
    if not told.violations:
        click.echo(f"\nNo violation stood; judged were {', '.join(told.invariants)}.")
        return
    rows = (
        (
            each.violation.invariant,
            each.violation.subject,
            f"{each.from_s:.1f}",
            "the end" if each.until_s is None else f"{each.until_s:.1f}",
            each.violation.message,
            each.violation.fix,
        )
        for each in told.violations
    )
    _print_table(console, ("invariant", "subject", "from", "until", "what", "what to do"), rows)


def _print_table(
    console: "Console", columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]
) -> None:
    """Print a table with a blank line above. Nothing where there are no rows."""
    table = plain_table(*columns)
    for row in rows:
        table.add_row(*("-" if cell in ("", None) else shown(cell) for cell in row))
    if table.row_count:
        console.print()
        console.print(table)
