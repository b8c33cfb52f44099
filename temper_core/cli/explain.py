"""``temper explain``: why a pod is placed where it is, and what would change that."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from temper_core.cli.planning import PlanInput, cpus_text, input_options, make_plan, wide_console

if TYPE_CHECKING:
    from rich.console import Console


@click.command("explain")
@click.argument("pod", metavar="POD")
@input_options(pods_required=False)
@click.option("--output", type=click.Choice(["table", "json"]), default="table")
def command(pod: str, output: str, **given: Any) -> None:  # noqa: ANN401 - a PlanInput's options
    """Say why POD (namespace/name, or a name that is unique) is placed where it is.

    With --pods it is planned from files, as by temper plan; without, the agent of this node is
    asked. Exit code 2 for a pod that is not there, 3 where no agent answers.
    """
    is_asked = given["pods"] is None
    document = _asked(pod, given) if is_asked else _planned(pod, PlanInput(**given))
    if output == "json":
        import json

        click.echo(json.dumps(document, indent=2))
    else:
        _print(document)


def _planned(pod: str, given: PlanInput) -> Mapping[str, Any]:
    from temper_core.plan import explain, explanation_document

    plan, settings = make_plan(given)
    return explanation_document(explain(plan, settings, pod))


def _asked(pod: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    from temper_core.client import ask_agent
    from temper_core.errors import MachineError
    from temper_core.settings import load

    if any(given[name] is not None for name in ("machine", "profiles", "node")):
        message = "--machine, --profiles and --node need --pods: the agent has its own"
        raise click.UsageError(message)
    document = ask_agent("/explain", {"pod": pod}, settings=load(given["settings"]).settings)
    if not isinstance(document, dict) or "places" not in document:
        raise MachineError("the agent's answer to /explain is not an explanation")
    return document


def _print(document: Mapping[str, Any]) -> None:
    console = wide_console()
    console.print(f"{document['pod']} (uid {document['uid']})")
    console.print(f"tier     {document['tier']}: {document['reason']}")
    for name, value in document["inputs"].items():
        console.print(f"         {name.replace('_', ' ')}: {value}")
    profile = document["profile"] or "none"
    console.print(f"profile  {profile}: {document['profile_reason']}")
    for place in document["places"]:
        _print_place(console, place)
    for note in document["notes"]:
        console.print(f"note     {note['code']}, {note['subject']}: {note['message']}")
    for change in document["changes"]:
        console.print(f"change   {change}")


def _print_place(console: "Console", place: Mapping[str, Any]) -> None:
    size = cpus_text(place["cpus_min"], place["cpus_max"])
    demoted = ", demoted" if place["demoted"] else ""
    console.print(f"layer    {place['layer']}: {place['threads']}")
    console.print(f"         {place['kind']}{demoted}, CPUs of its own: {size}")
    console.print(f"         {place['reason']}")
