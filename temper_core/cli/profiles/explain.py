"""``temper profiles explain``: why a pod has its profile, and the layer of each thread group."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from temper_core.cli.explain import explanation
from temper_core.cli.planning import input_options
from temper_core.console import output_option, print_json, results_console

if TYPE_CHECKING:
    from rich.console import Console

PROFILE_KEYS = (
    "pod", "tier", "profile", "profile_reason", "profile_extends", "profile_about", "groups",
)  # fmt: skip


@click.command("explain")
@click.argument("pod", metavar="POD")
@input_options("the agent of this node answers")
@click.option("--steered", is_flag=True, help="With --pods: plan for hints, as temper plan does.")
@output_option
def command(
    pod: str,
    output: str,
    steered: bool,
    **inputs: Any,  # noqa: ANN401 - a PlanInput's options
) -> None:
    """Explain why POD has its profile or none, and what becomes of each thread group.

    With --pods the plan is made from files, as by temper plan. Without it the agent of this node
    answers. Exit code 2 for an unknown pod, 3 if no agent answers.
    """
    document = explanation(pod, inputs, steered=steered)
    parts = {key: document.get(key) for key in PROFILE_KEYS}
    if output == "json":
        print_json(parts)
    else:
        _print(results_console(), parts)


def _print(console: "Console", parts: Mapping[str, Any]) -> None:
    console.print(f"{parts['pod']}, tier {parts['tier']}")
    console.print(f"profile  {parts['profile'] or 'none'}: {parts['profile_reason']}")
    for parent in parts["profile_extends"] or ():
        console.print(f"         extends {parent}")
    if parts["profile_about"]:
        console.print(f"for      {parts['profile_about']}")
    for group in parts["groups"] or ():
        _print_group(console, group)


def _print_group(console: "Console", group: Mapping[str, Any]) -> None:
    console.print(f"group    {group['name']}, {group['treatment']}: {group['threads']}")
    console.print(f"         {group['layer']}: {group['becomes']}")
    if group["cores"]:
        console.print(f"         {group['cores']}")
    if group["static"]:
        console.print(f"         static: {group['static']}")
    for note in group["notes"]:
        console.print(f"         {note}")
