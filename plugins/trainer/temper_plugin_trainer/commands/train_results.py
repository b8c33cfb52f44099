"""``temper train results``: the results that the agent of this node keeps."""

from pathlib import Path
from typing import Any

import click

from temper_core import ask_agent
from temper_core.console import (
    output_option,
    plain_table,
    print_json,
    printable,
    read_settings,
    results_console,
    settings_option,
)
from temper_core.observed import Row, number, rows, table, text


@click.command("results")
@settings_option
@output_option
def results_command(settings_path: Path | None, output: str) -> None:
    """Show the results of the newest trainings on this node, the newest first.

    The agent keeps 32 of them. Exit code 3 if no agent answers.
    """
    document = ask_agent("/training", settings=read_settings(settings_path))
    if output == "json":
        print_json(document)
        return
    found = rows(document, "results")
    if not found:
        click.echo("the agent keeps no result of a training")
    for result in found:
        _show(result)


def _show(result: Row) -> None:
    click.echo(printable(f"{text(result, 'workload')} {text(result, 'date')}"))
    click.echo(printable(f"  {text(result, 'verdict')}"))
    shown = plain_table("change", "against", "blocks", "gain", "others wait", "verdict")
    for name in ("confirmation", "against_stock"):
        if result.get(name):
            _add(shown, table(result, name))
    for trial in rows(result, "trials"):
        _add(shown, trial)
    results_console().print(shown)


def _add(shown: Any, trial: Row) -> None:  # noqa: ANN401 - a table of rich
    candidate, against = table(trial, "candidate"), table(trial, "against")
    why = f": {text(trial, 'why')}" if text(trial, "why") else ""
    gain = number(trial, "gain")
    shown.add_row(
        printable(text(candidate, "change")),
        printable(text(against, "change")),
        str(int(number(trial, "blocks") or 0)),
        "-" if gain is None else f"{100 * gain:+.1f} %",
        f"{_waits(candidate)}, {_waits(against)} before",
        printable(f"{text(trial, 'verdict')}{why}"),
    )


def _waits(arm: Row) -> str:
    waits = number(arm, "others_wait")
    return "-" if waits is None else f"{waits:.2f}"
