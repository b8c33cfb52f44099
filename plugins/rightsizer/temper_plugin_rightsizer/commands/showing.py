"""How a report is shown: the options that all of its commands have, and the output."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from temper_core.console import EXIT_FINDINGS, Row, print_json, printable
from temper_core.observed import rows
from temper_plugin_rightsizer.commands.formats import (
    as_csv,
    as_markdown,
    as_table,
    needs_change,
    texts,
)
from temper_plugin_rightsizer.commands.page import as_html
from temper_plugin_rightsizer.commands.patches import as_patches
from temper_plugin_rightsizer.commands.pull_request import as_pull_request
from temper_plugin_rightsizer.commands.values import as_values

Function = TypeVar("Function", bound=Callable[..., Any])
WRITERS: Mapping[str, Callable[[Row], str]] = {
    "csv": as_csv,
    "markdown": as_markdown,
    "html": as_html,
    "patch": as_patches,
    "values": as_values,
    "pr": as_pull_request,
}
FORMATS = ("table", "json", *WRITERS)


def showing_options(function: Function) -> Function:
    """Add ``--explain``, ``--fail-on-change`` and ``--output``. ``show_report`` takes them."""
    options = (
        click.option(
            "--explain/--no-explain",
            default=True,
            show_default=True,
            help="Show the reasons in a table.",
        ),
        click.option(
            "--fail-on-change", is_flag=True, help="Exit with 1 if a container should be changed."
        ),
        click.option(
            "--output",
            type=click.Choice(FORMATS),
            default="table",
            show_default=True,
            help="The format of the report.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def show_report(document: Row, *, explain: bool, fail_on_change: bool, output: str) -> int:
    """Print a report. Return the exit code: 1 for a change that is due, if asked to.

    Notes on what is not known go to standard error.
    """
    for note in texts(document, "notes"):
        click.echo(f"note: {printable(note)}", err=True)
    if output == "json":
        print_json(document)
    else:
        click.echo(_shown(document, output, explain))
    return EXIT_FINDINGS if fail_on_change and needs_change(document) else 0


def _shown(document: Row, output: str, explain: bool) -> str:
    if output in WRITERS:
        return WRITERS[output](document)
    if not rows(document, "containers"):
        return "no demand is known yet; the agent learns it from its next windows on"
    return as_table(document, explains=explain)
