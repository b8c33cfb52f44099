"""``temper plan``: compile pods into layers, without touching anything."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.cli.planning import (
    PlanInput,
    cpus_text,
    input_options,
    make_plan,
    prepare,
)
from temper_core.console import output_formats, plain_table, print_json, results_console

if TYPE_CHECKING:
    from rich.console import Console

    from temper_core.records.layers import Layer
    from temper_core.records.plans import LayerPlan

FLAGS = ("exclusive", "protected", "preempt", "demoted")


@click.command("plan")
@input_options("the pods of this node, from [pods] source")
@output_formats("table", "json", "engine")
@click.option("--steered", is_flag=True, help="Plan for hints, as where the kernel allows them.")
@click.option("--diff", is_flag=True, help="Show what the plan would change of the one in force.")
@click.option(
    "--against",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="For --diff: a plan as --output json writes it; without it, the running agent's.",
)
@click.pass_context
def command(
    context: click.Context,
    /,
    output: str,
    steered: bool,
    diff: bool,
    against: Path | None,
    **inputs: Any,  # noqa: ANN401 - the options of a PlanInput
) -> None:
    """Show the plan that the agent would make of this node's pods, or of those in a PodList.

    It changes nothing: any user can run it, on any machine. The agent need not run. --output
    engine prints the exact configuration for scx_layered. Exit code 0 if a plan could be made, with
    or without notes. 2 if a file has errors. 3 if this machine or its pods are needed and cannot be
    read.

    --diff shows how the change would take effect (hints, warm swap, cold restart), why, and which
    pods move. Exit code 0 if hints suffice, 1 if an engine has to load, 3 if no agent answers.
    """
    if diff:
        context.exit(_differ(PlanInput(**inputs), output, against, steered=steered))
    if against is not None:
        raise click.UsageError("--against is for --diff")
    plan, _ = make_plan(PlanInput(**inputs), steered=steered)
    if output == "engine":
        _print_engine(plan)
    elif output == "json":
        from temper_core.plan import plan_document

        print_json(plan_document(plan))
    else:
        _print_table(plan)


def _differ(inputs: PlanInput, output: str, against: Path | None, *, steered: bool) -> int:
    if output == "engine":
        raise click.UsageError("--diff has no output engine")
    from temper_core.cli.plan_difference import difference, difference_document, print_difference
    from temper_core.console import print_json

    change = difference(prepare(inputs), against, steered=steered)
    if output == "json":
        print_json(difference_document(change))
    else:
        print_difference(change)
    return change.exit_code


def _print_engine(plan: "LayerPlan") -> None:
    from temper_core.engine.capabilities import capabilities_of
    from temper_core.engine.configuration_check import ensure_accepted
    from temper_core.plan import render_engine

    text = render_engine(plan)
    options = ["--task-hint-map=PIN"] if plan.is_steered else []
    cpus = len(plan.machine.cpus)
    ensure_accepted(text, capabilities_of(None), arguments=options, cpus=cpus)
    click.echo(text, nl=False)


def _print_table(plan: "LayerPlan") -> None:
    from temper_core.plan.capacity import counted

    console = results_console()
    machine = plan.machine
    cores, cpus = counted(machine.cores, "core"), counted(len(machine.cpus), "CPU")
    pods = counted(len(plan.assignments), "pod")
    console.print(f"{pods} on {cores}, {cpus}, {machine.architecture}\n")
    _print_layers(console, plan)
    _print_pods(console, plan)
    if plan.notes:
        notes = plain_table("note", "subject", "message")
        for note in plan.notes:
            notes.add_row(note.code, note.subject, note.message)
        console.print()
        console.print(notes)


def _print_layers(console: "Console", plan: "LayerPlan") -> None:
    table = plain_table("layer", "kind", "cpus", "flags", "slice", "weight", "pods", "why")
    for layer in plan.layers:
        table.add_row(
            layer.name,
            layer.kind.value,
            cpus_text(layer.cpus_min, layer.cpus_max),
            " ".join(flag for flag in FLAGS if getattr(layer, flag)) or "-",
            f"{layer.slice_us / 1000:g} ms",
            str(layer.weight),
            _pod_count(layer),
            layer.reason,
        )
    console.print(table)


def _pod_count(layer: "Layer") -> str:
    groups = f" +{len(layer.group_members)} by group" if layer.group_members else ""
    return f"{len(layer.members)}{groups}"


def _print_pods(console: "Console", plan: "LayerPlan") -> None:
    if not plan.assignments:
        return
    table = plain_table("pod", "tier", "layers", "profile", "why")
    layers = _layers_by_pod(plan)
    for assignment in plan.assignments:
        profile = assignment.profile.profile.id if assignment.profile else "-"
        table.add_row(
            assignment.pod.key,
            assignment.tier.value,
            ", ".join(layers[assignment.pod.key]),
            profile,
            assignment.reason,
        )
    console.print()
    console.print(table)


def _layers_by_pod(plan: "LayerPlan") -> Mapping[str, list[str]]:
    layers: defaultdict[str, list[str]] = defaultdict(list)
    for layer in plan.layers:
        for key in (*layer.members, *layer.group_members):
            layers[key].append(layer.name)
    return layers
