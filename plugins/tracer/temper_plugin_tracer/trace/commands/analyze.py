"""``temper trace analyze``: run times, waits, and the threads that ran meanwhile."""

import sys
import time
from pathlib import Path

import click

from temper_core.console import (
    Progress,
    bounded_memory,
    output_formats,
    print_json,
    results_console,
)
from temper_plugin_tracer.trace.analysis.report import LEVELS, Report

USUAL_ROWS, MOST_ROWS = 20, 5_000
QUIET_S = 1.0
"""Seconds before progress is shown."""
PARTIES = ("thread", "group", "pod", "layer")


@click.command("analyze")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--by", type=click.Choice(LEVELS), default="thread", show_default=True)
@click.option(
    "--behind",
    type=click.Choice(PARTIES),
    help="What the parties are summed by. As --by where that is possible, else by thread.",
)
@click.option(
    "--of",
    default="",
    help="Only subjects of --by with this text in their name, and their wake-ups.",
)
@click.option(
    "--top",
    type=click.IntRange(1, MOST_ROWS),
    default=USUAL_ROWS,
    show_default=True,
    help="Rows of each table.",
)
@output_formats("table", "json", "html")
def command(file: Path, by: str, behind: str | None, of: str, top: int, output: str) -> None:
    """Show run times, waits, and the threads that ran while others waited.

    FILE is a trace of Temper or of Perfetto, or ftrace text: the file trace of tracefs, or what
    trace-cmd report or perf script print. It may be compressed by gzip. No agent is needed.
    """
    from temper_plugin_tracer.trace.commands.showing import (  # noqa: PLC0415 - slow
        report_json,
        report_tables,
    )

    report = read_report(file, top, of, slowest_by=by)
    if output == "json":
        print_json(report_json(report))
    elif output == "html":
        from temper_plugin_tracer.trace.page.making import page_of  # noqa: PLC0415 - for pages only

        click.echo(page_of(report, file.name))
    else:
        parties = behind or (by if by in PARTIES else "thread")
        results_console().print(report_tables(report, by, parties))


def read_report(file: Path, rows: int, of: str = "", slowest_by: str = "") -> Report:
    """Read and analyze a trace, with a line of progress. Raise InputError for a bad one.

    With the level *slowest_by* the slowest wake-ups, too, are those of *of*.
    """
    from attrs import evolve  # noqa: PLC0415 - slow

    from temper_plugin_tracer.trace.analyzing import analyze  # noqa: PLC0415 - slow
    from temper_plugin_tracer.trace.asked_wake_ups import slowest_of  # noqa: PLC0415 - slow
    from temper_plugin_tracer.trace.reading import open_trace  # noqa: PLC0415 - slow

    progress, began, is_shown = Progress("Ctrl-C to end"), time.monotonic(), False

    def tell(events: int) -> None:
        nonlocal is_shown
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        if is_terminal and time.monotonic() - began > QUIET_S:
            is_shown = True
            progress.show(f"{file.name}: {events} events")

    try:
        with bounded_memory(f"{file}: to analyze it takes"):
            trace = open_trace(file)
            report = analyze(trace, rows=rows, slowest=rows, of=of, listener=tell)
            if of and slowest_by:
                slowest = slowest_of(trace, slowest_by, of, rows, tell)
                report = evolve(report, slowest=slowest)
    except KeyboardInterrupt:
        raise click.ClickException(f"{file}: interrupted, so that nothing is told") from None
    if is_shown:
        progress.end(f"{file.name}: {report.events} events")
    if trace.cut:
        click.echo(f"{file.name}: {trace.cut}; what comes before it was analyzed", err=True)
    return report
