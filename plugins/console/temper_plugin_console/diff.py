"""``temper diff``: the changes from one observation to another."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core import DocumentError, ask_observation, read_json
from temper_core.console import (
    EXIT_CLEAN,
    EXIT_FINDINGS,
    FiniteRange,
    output_option,
    print_json,
    read_settings,
    settings_option,
)

if TYPE_CHECKING:
    from temper_plugin_console.observation_difference import (
        ChangedItem,
        ObservationDifference,
        ValueChange,
    )

SCHEMA_VERSION = 1
OBSERVATION_VERSION = 1
"""The schema version of observations that can be compared."""
THREADS_ASKED_FOR = 1_000
LISTS = ("layers", "threads", "pods", "violations")
STDIN = "-"


@click.command("diff")
@click.argument("files", metavar="[A B]", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--live",
    type=FiniteRange(min=0.2, max=86_400),
    metavar="SECONDS",
    help="Take both from the agent, this many seconds apart.",
)
@click.option(
    "--least-cpus",
    type=FiniteRange(min=0),
    default=0.1,
    show_default=True,
    help="Least change of CPU time that counts, in CPUs.",
)
@click.option(
    "--least-pressure",
    type=FiniteRange(min=0),
    default=0.05,
    show_default=True,
    help="Least change of pressure that counts; 0.05 is five percent of the time.",
)
@settings_option
@output_option
@click.pass_context
def command(
    context: click.Context,
    /,
    files: tuple[Path, ...],
    live: float | None,
    settings_path: Path | None,
    output: str,
    **least: float,
) -> None:
    """Show the changes from observation A to observation B.

    A and B are files of 'temper observe --output json', or - for standard input. It compares mode,
    generation, layers and their sizes, pods, layers of threads, violations, CPU time and pressure.
    Exit code 0 without a difference, 1 with one, 2 if a file is no observation, 3 if --live finds
    no agent.
    """
    from temper_plugin_console.observation_difference import Thresholds, difference

    if live is not None and files:
        raise click.UsageError("--live takes both observations from the agent: give no files")
    if live is None:
        before, after = _read_both(files)
    else:
        before, after = _observe_both(settings_path, live)
    comparison = difference(before, after, Thresholds(least["least_cpus"], least["least_pressure"]))
    if output == "json":
        print_json(_document(before, after, comparison))
    else:
        _print(before, after, comparison)
    context.exit(EXIT_CLEAN if comparison.is_empty else EXIT_FINDINGS)


def _read_both(files: Sequence[Path]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    if len(files) != 2:  # noqa: PLR2004 - one before, one after
        raise click.UsageError("give two observations, A and B, or --live SECONDS")
    if all(str(file) == STDIN for file in files):
        raise click.UsageError("only one of the two can come from standard input")
    before, after = map(_read, files)
    return before, after


def _read(file: Path) -> Mapping[str, Any]:
    import sys

    if str(file) == STDIN and sys.stdin is None:
        raise DocumentError(STDIN, ["standard input is closed"])
    return _checked(read_json(file), str(file))


def _checked(document: object, source: str) -> Mapping[str, Any]:
    """Return *document* if it is an observation, else raise DocumentError."""
    if not isinstance(document, dict):
        raise DocumentError(source, ["is no observation: must be an object"])
    version = document.get("schema_version")
    if version != OBSERVATION_VERSION or isinstance(version, bool):
        problem = "is missing" if version is None else f"must be {OBSERVATION_VERSION}"
        why = f"is no observation that can be read: schema_version {problem}"
        raise DocumentError(source, [why])
    wrong = [key for key in LISTS if not isinstance(document.get(key), list)]
    wrong += [] if isinstance(document.get("mode"), str) else ["mode"]
    if wrong:
        problem = f"{', '.join(wrong)} missing, or of another type"
        raise DocumentError(source, [f"is no observation: {problem}"])
    return document


def _observe_both(
    settings_path: Path | None, seconds: float
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    settings = read_settings(settings_path)
    before = ask_observation(settings, THREADS_ASKED_FOR)
    time.sleep(seconds)
    after = ask_observation(settings, THREADS_ASKED_FOR)
    if before.get("at") == after.get("at"):
        click.echo("temper: the agent made no new observation meanwhile; wait longer", err=True)
    return before, after


def _document(
    before: Mapping[str, Any], after: Mapping[str, Any], comparison: "ObservationDifference"
) -> dict[str, Any]:
    def changes(item: "ChangedItem | Sequence[ValueChange]") -> dict[str, Any]:
        values = item if isinstance(item, Sequence) else item.changes
        return {change.what: {"before": change.before, "after": change.after} for change in values}

    def changed(items: "Sequence[ChangedItem]") -> list[dict[str, Any]]:
        return [{"name": item.name, "changes": changes(item)} for item in items]

    return {
        "schema_version": SCHEMA_VERSION,
        "before": _which(before),
        "after": _which(after),
        "is_different": not comparison.is_empty,
        "node": changes(comparison.node),
        "layers": {
            "added": list(comparison.layers_added),
            "removed": list(comparison.layers_removed),
            "changed": changed(comparison.layers),
        },
        "pods": {
            "arrived": list(comparison.pods_arrived),
            "left": list(comparison.pods_left),
            "changed": changed(comparison.pods),
        },
        "threads": changed(comparison.threads),
        "violations": {
            "arrived": list(comparison.violations_arrived),
            "cleared": list(comparison.violations_cleared),
        },
        "pressure": changed(comparison.pressure),
    }


def _which(document: Mapping[str, Any]) -> dict[str, str]:
    from temper_core.observed import text

    return {"node": text(document, "node"), "at": text(document, "at")}


def _print(
    before: Mapping[str, Any], after: Mapping[str, Any], comparison: "ObservationDifference"
) -> None:
    from temper_core.console import plain_table, results_console, shown

    console = results_console()
    for word, document in (("before", before), ("after ", after)):
        which = _which(document)
        console.print(shown(f"{word}  {which['node']}  {which['at']}"))
    if comparison.is_empty:
        console.print("nothing has changed")
        return
    table = plain_table("what", "name", "", "before", "after")
    for line in _lines(comparison):
        table.add_row(*map(shown, line))
    console.print(table)


def _lines(comparison: "ObservationDifference") -> Iterator[tuple[str, str, str, str, str]]:
    for change in comparison.node:
        yield ("node", "", *_cells(change))
    parts = (
        ("layer", comparison.layers_added, comparison.layers_removed, comparison.layers),
        ("pod", comparison.pods_arrived, comparison.pods_left, comparison.pods),
        ("thread", (), (), comparison.threads),
        ("violation", comparison.violations_arrived, comparison.violations_cleared, ()),
        ("pressure", (), (), comparison.pressure),
    )
    for what, arrived, left, changed in parts:
        yield from ((what, name, "new", "", "") for name in arrived)
        yield from ((what, name, "gone", "", "") for name in left)
        for item in changed:
            yield from ((what, item.name, *_cells(change)) for change in item.changes)


def _cells(change: "ValueChange") -> tuple[str, str, str]:
    return (change.what, _said(change.before), _said(change.after))


def _said(value: object) -> str:
    return (
        "-" if value in (None, "") else f"{value:.2f}" if isinstance(value, float) else str(value)
    )
