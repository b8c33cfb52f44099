"""``temper lint``: the violations that stand, from the running agent or from a saved answer."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from temper_core import InputError, MachineError, ask_agent, load_settings, read_json

EXIT_VIOLATIONS = 1
NARROWEST = 80
PIPED_WIDTH = 10_000


@click.command("lint")
@click.option("--settings", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option(
    "--from",
    "saved",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A saved answer of /violations or /observe; - reads it from standard input.",
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def lint(context: click.Context, settings: Path | None, saved: Path | None, output: str) -> None:
    """Show where the node does not keep its promises.

    Exit code 1 where a violation stands, 0 where none does, 3 where no agent answers or it has
    not looked yet.
    """
    answer = (
        read_json(saved) if saved else ask_agent("/violations", settings=load_settings(settings))
    )
    found = _violations_in(answer)
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    elif found:
        _print_table(found)
    else:
        click.echo("No violation stands.")
    context.exit(EXIT_VIOLATIONS if found else 0)


def _violations_in(answer: object) -> list[Mapping[str, Any]]:
    if not isinstance(answer, dict) or not isinstance(answer.get("violations"), list):
        raise InputError("this is no answer of /violations or /observe: it has no 'violations'")
    if answer.get("at") is None:
        raise MachineError("the agent has not looked at the node yet; ask again in a few seconds")
    found: list[Mapping[str, Any]] = answer["violations"]
    if not all(isinstance(violation, dict) for violation in found):
        raise InputError("this is no answer of /violations or /observe: a violation is no object")
    return found


def _print_table(found: list[Mapping[str, Any]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - slow, and for tables only
    from rich.table import Table  # noqa: PLC0415 - the same

    table = Table(box=None, pad_edge=False)
    for column in ("invariant", "subject", "what", "what to do"):
        table.add_column(column, overflow="fold")
    for violation in found:
        cells = (violation.get(key, "") for key in ("invariant", "subject", "message", "fix"))
        table.add_row(*(str(cell) for cell in cells))
    console = Console(markup=False, highlight=False)
    # A pipe has no width, and rich would squeeze the table into 80 columns.
    width = max(console.width, NARROWEST) if console.is_terminal else PIPED_WIDTH
    Console(markup=False, highlight=False, width=width).print(table)
