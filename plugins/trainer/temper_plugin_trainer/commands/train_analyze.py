"""``temper train analyze``: what the threads of a bundle do, as groups with their evidence."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from temper_core import InputError
from temper_core.console import (
    Column,
    Row,
    bounded_memory,
    output_option,
    print_json,
    printable,
    results_console,
    table_of,
)
from temper_plugin_trainer.output_files import reserved, write_whole
from temper_plugin_trainer.training.bundles import Bundle, BundleTrace, read_bundle
from temper_plugin_trainer.training.classes import Channel, milliseconds
from temper_plugin_trainer.training.grouping import OUTSIDE_OF, Analysis, TrainedGroup, analyse
from temper_plugin_trainer.training.wake_graph import wake_graph

SCHEMA_VERSION = 1
DIGITS = 4


@click.command("analyze")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--svg", "drawing", type=click.Path(path_type=Path), help="Draw the wake graph to this file."
)
@click.option(
    "--trace", type=click.Path(path_type=Path), help="Write the bundle's kernel trace to this file."
)
@output_option
def analyze_command(bundle: Path, drawing: Path | None, trace: Path | None, output: str) -> None:
    """Group the threads of BUNDLE, a file of temper train observe, by name and behaviour.

    Each group has a class, its evidence and a confidence from 0 to 1: sync compute, latency
    critical, I/O wake chain or sporadic. Threads without a clear class are
    listed, and so are names that the behaviour contradicts. Needs no agent.
    """
    with bounded_memory("the bundle takes"):
        read = read_bundle(bundle)
    analysis = analyse(read)
    if drawing is not None:
        _draw(bundle, read, analysis, drawing)
    if trace is not None:
        _extract(bundle, read.trace, trace)
    if output == "json":
        print_json(_document(read, analysis))
        return
    _print(read, analysis)


def _draw(path: Path, bundle: Bundle, analysis: Analysis, drawing: Path) -> None:
    """Write the wake graph to a new file. Raise InputError if the bundle has no wake-ups."""
    if not analysis.edges:
        why = bundle.agent.wakes.reason or "no window saw any"
        raise InputError(f"{path}: has no wake-ups to draw: {why}")
    text = wake_graph(analysis)
    with reserved(drawing) as file:
        if file is None:
            raise InputError("--svg -: standard output has the groups; name a file")
        write_whole(file, text.encode(), drawing)


def _extract(path: Path, trace: BundleTrace | None, output: Path) -> None:
    """Write the trace of a bundle to a new file. Raise InputError if it has none."""
    if trace is None:
        raise InputError(f"{path}: has no trace; observe with --trace")
    try:
        content = trace.decoded()
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    with reserved(output) as file:
        if file is None:
            raise InputError("--trace -: standard output has the groups; name a file")
        write_whole(file, content, output)


def _print(bundle: Bundle, analysis: Analysis) -> None:
    console = results_console()
    console.print(
        printable(
            f"{bundle.program}: {len(bundle.threads)} threads, {bundle.cpus_used:.2f} CPUs used in "
            f"{bundle.seconds:.1f} s, {bundle.machine.cores} cores, {bundle.date}"
        )
    )
    console.print(table_of("groups of threads", _COLUMNS, [*map(_row, analysis.groups)]))
    for line in analysis.remarks:
        console.print(printable(line))
    for line in analysis.untold:
        console.print(printable(f"unknown: {line}"))


def _row(group: TrainedGroup) -> dict[str, Any]:
    behaviour, channels = group.behaviour, group.behaviour.channels
    known = behaviour.inside_share
    return {
        "container": group.key.container,
        "process": group.key.process,
        "family": group.key.family,
        "label": group.label,
        "class": str(group.kind),
        "confidence": group.confidence,
        "why": group.why,
        "doubt": group.doubt,
        "contradicts": group.contradicts,
        "threads": len(group.tids),
        "names": list(group.names),
        "cpus": round(group.cpus, DIGITS),
        "cpu_share": round(behaviour.share, DIGITS),
        "peak_share": round(behaviour.peak, DIGITS),
        "sleeps_per_s": round(behaviour.rate, 2),
        "run_ms": round(behaviour.run_ms, DIGITS),
        "wait_share": round(behaviour.wait_share, DIGITS),
        "sleeps": behaviour.sleeps,
        "woken_by_program": None if known is None else round(known[0], DIGITS),
        "wakers_seen": known is not None and known[1],
        "woken_by": {str(kind): channels[kind] for kind in Channel if channels.get(kind)},
    }


def _document(bundle: Bundle, analysis: Analysis) -> Mapping[str, Any]:
    names = {place: group.label for place, group in enumerate(analysis.groups)}
    names.update(OUTSIDE_OF)
    return {
        "schema_version": SCHEMA_VERSION,
        "program": bundle.program,
        "date": bundle.date,
        "seconds": bundle.seconds,
        "cpus_used": round(bundle.cpus_used, DIGITS),
        "representative": not bundle.problems,
        "groups": [_row(group) for group in analysis.groups],
        "edges": [
            {
                "waker": names[edge.waker],
                "wakee": names[edge.wakee],
                "wakes_per_s": round(edge.per_s, 2),
            }
            for edge in analysis.edges
        ],
        "remarks": list(analysis.remarks),
        "not_told": list(analysis.untold),
    }


def _woken_by(row: Row) -> object:
    """Return the most frequent waker, by wait channels."""
    woken: Mapping[str, int] = row["woken_by"]
    return max(woken, key=lambda kind: woken[kind]) if woken else "-"


_COLUMNS: tuple[Column, ...] = (
    ("group", lambda row: row["label"]),
    ("container", lambda row: row["container"]),
    ("threads", lambda row: row["threads"]),
    ("class", lambda row: row["class"]),
    ("confidence", lambda row: f"{row['confidence']:.2f}"),
    ("CPUs", lambda row: f"{row['cpus']:.2f}"),
    ("of one CPU", lambda row: f"{100 * row['cpu_share']:.0f} %"),
    ("sleeps/s", lambda row: f"{row['sleeps_per_s']:.1f}"),
    ("ms per run", lambda row: milliseconds(row["run_ms"])),
    ("waited", lambda row: f"{100 * row['wait_share']:.0f} %"),
    ("woken by", _woken_by),
    ("reason", lambda row: row["why"]),
)
