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

MINUTE_S = 60.0


@click.command("results")
@settings_option
@output_option
def results_command(settings_path: Path | None, output: str) -> None:
    """Show the trainings that run on this node, and the results of others, the newest first.

    The agent keeps 32 of them. Exit code 3 if no agent answers.
    """
    document = ask_agent("/training", settings=read_settings(settings_path))
    if output == "json":
        print_json(document)
        return
    for run in rows(document, "running"):
        _show_running(run)
    found = rows(document, "results")
    if not found:
        click.echo("the agent keeps no result of a training")
    for result in found:
        _show(result)


def _show_running(run: Row) -> None:
    left_s = number(run, "left_s")
    left = "" if left_s is None else f", at most {left_s / MINUTE_S:.0f} minutes left"
    click.echo(printable(f"{text(run, 'workload')} now"))
    click.echo(printable(f"  {text(run, 'phase')}, {text(run, 'arm')}{left}"))
    for name in ("waiting", "abort"):
        if text(run, name):
            click.echo(printable(f"  {name}: {text(run, name)}"))
    shown = plain_table("change", "blocks", "gain", "verdict")
    for trial in rows(run, "ended"):
        blocks, gain = number(trial, "blocks") or 0, number(trial, "gain") or 0.0
        change, verdict = printable(text(trial, "change")), printable(text(trial, "verdict"))
        shown.add_row(change, str(int(blocks)), f"{100 * gain:+.1f} %", verdict)
    if shown.row_count:
        results_console().print(shown)


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
