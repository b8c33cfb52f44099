"""``temper explain``: why a pod is placed where it is, and what would change that."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from temper_core.cli.planning import PlanInput, cpus_text, input_options, make_plan
from temper_core.console import (
    folded,
    output_option,
    print_json,
    printable,
    results_console,
    watch_options,
)

if TYPE_CHECKING:
    from rich.console import Console

LABEL = 9
"""Columns of the labels."""


@click.command("explain")
@click.argument("pod", metavar="POD")
@input_options("the agent of this node answers")
@click.option("--steered", is_flag=True, help="With --pods: plan for hints, as temper plan does.")
@output_option
@watch_options
def command(
    pod: str,
    output: str,
    steered: bool,
    **inputs: Any,  # noqa: ANN401 - a PlanInput's options
) -> None:
    """Explain why POD (namespace/name, or a unique name) is placed where it is.

    With --pods the plan is made from files, as by temper plan. Without it the agent of this node
    answers, and the pod's threads are listed too: the layer that the plan wants for each, the
    layer of its hint, and the layer in the engine. Exit code 2 for an unknown pod, 3 if no agent
    answers.
    """
    document = explanation(pod, inputs, steered=steered)
    if output == "json":
        print_json(document)
    else:
        _print(document)


def explanation(pod: str, inputs: Mapping[str, Any], *, steered: bool) -> Mapping[str, Any]:
    """Return why *pod* is where it is, from files or from the agent.

    Raises InputError for an unknown pod, NoAgentError if no agent answers, and MachineError if its
    answer is malformed.
    """
    if inputs["pods"] is not None:
        return _planned(pod, PlanInput(**inputs), steered=steered)
    if steered:
        raise click.UsageError("--steered needs --pods: the agent plans as it steers")
    return _asked(pod, inputs)


def _planned(pod: str, inputs: PlanInput, *, steered: bool) -> Mapping[str, Any]:
    from temper_core.plan import explain, explanation_document

    plan, settings = make_plan(inputs, steered=steered)
    return explanation_document(explain(plan, settings, pod))


def _asked(pod: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    from temper_core.cli.explanation_answer import require_explanation
    from temper_core.client import ask_agent
    from temper_core.settings import load

    if any(inputs[name] is not None for name in ("machine", "profiles", "node")):
        message = "--machine, --profiles and --node need --pods: the agent has its own"
        raise click.UsageError(message)
    return require_explanation(
        ask_agent("/explain", {"pod": pod}, settings=load(inputs["settings"]).settings)
    )


def _print(document: Mapping[str, Any]) -> None:
    click.echo(printable(f"{document['pod']} (uid {document['uid']})"))
    _print_line("tier", f"{document['tier']}: {document['reason']}")
    for name, value in document["inputs"].items():
        _print_line("", f"{name.replace('_', ' ')}: {value}")
    _print_line("profile", f"{document['profile'] or 'none'}: {document['profile_reason']}")
    for place in document["places"]:
        _print_place(place)
    for note in document["notes"]:
        _print_line("note", f"{note['code']}, {note['subject']}: {note['message']}")
    for change in document["changes"]:
        _print_line("change", change)
    _print_threads(results_console(), document.get("threads"))


def _print_place(place: Mapping[str, Any]) -> None:
    size = cpus_text(place["cpus_min"], place["cpus_max"])
    demoted = ", demoted" if place["demoted"] else ""
    hint = place.get("hint")
    by_hint = "" if hint is None else f", by hint {hint}"
    _print_line("layer", f"{place['layer']}{by_hint}: {place['threads']}")
    _print_line("", f"{place['kind']}{demoted}, CPUs of its own: {size}")
    _print_line("", place["reason"])


def _print_line(label: str, text: str) -> None:
    """Print *text* beside *label*. Its further lines begin where it does."""
    click.echo(f"{label:<{LABEL}}{folded(text, LABEL)}")


def _print_threads(console: "Console", threads: Sequence[Mapping[str, Any]] | None) -> None:
    """Show the threads of a pod, which only an agent's answer has."""
    from temper_core.console import table_of

    if threads is None:
        return
    astray = sum(bool(row.get("is_astray")) for row in threads)
    console.print(f"threads  {len(threads)} shown, {astray} astray")
    columns = (
        ("tid", lambda row: row.get("tid")),
        ("thread", lambda row: row.get("comm")),
        ("plan", lambda row: row.get("expected_layer") or "-"),
        ("hint", lambda row: row.get("hinted_layer") or "-"),
        ("engine", _engine_layer),
        ("cpus used", lambda row: row.get("cpu_used")),
        ("", _remark),
    )
    table = table_of("", columns, threads)
    if table is not None:
        console.print(table)


def _engine_layer(row: Mapping[str, Any]) -> str:
    """Return the engine's layer of a thread, marked if it is inferred from the matchers."""
    layer = str(row.get("layer") or "-")
    return layer if layer == "-" or row.get("layer_is_known") else f"{layer} (inferred)"


def _remark(row: Mapping[str, Any]) -> str:
    labels = {"is_astray": "astray", "is_decided": "decided in user space"}
    return ", ".join(words for key, words in labels.items() if row.get(key))
