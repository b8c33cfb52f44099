"""``temper trace analyze``: who ran, who waited, and who ran while another waited."""

import sys
from pathlib import Path

import click

from temper_core.console import Progress, print_json, results_console
from temper_plugin_tracer.trace.analysis.report import LEVELS, Report

USUAL_ROWS, MOST_ROWS = 20, 5_000
PARTIES = ("thread", "group", "pod", "layer")


@click.command("analyze")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--by", type=click.Choice(LEVELS), default="thread", show_default=True)
@click.option(
    "--behind",
    type=click.Choice(PARTIES),
    help="What the parties are summed by. As --by where that is possible, else by thread.",
)
@click.option("--of", default="", help="Only subjects with this text in their name.")
@click.option(
    "--top",
    type=click.IntRange(1, MOST_ROWS),
    default=USUAL_ROWS,
    show_default=True,
    help="Rows of each table.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "html"]),
    default="table",
    show_default=True,
)
def command(file: Path, by: str, behind: str | None, of: str, top: int, output: str) -> None:
    """Show who ran, who waited, and who ran while another waited.

    FILE is a trace of Temper or of Perfetto, or ftrace text: the file trace of tracefs, or what
    trace-cmd report or perf script print. It may be compressed by gzip. No agent is needed.
    """
    from temper_plugin_tracer.trace.commands.showing import (  # noqa: PLC0415 - slow
        report_json,
        report_tables,
    )

    report = read_report(file, top, of)
    if output == "json":
        print_json(report_json(report))
    elif output == "html":
        from temper_plugin_tracer.trace.page.making import page_of  # noqa: PLC0415 - for pages only

        click.echo(page_of(report, file.name))
    else:
        parties = behind or (by if by in PARTIES else "thread")
        results_console().print(report_tables(report, by, parties))


def read_report(file: Path, rows: int, of: str = "") -> Report:
    """Read and analyze a trace, with a line of progress. Raise InputError for a bad one."""
    from temper_plugin_tracer.trace.analyzing import analyze  # noqa: PLC0415 - slow
    from temper_plugin_tracer.trace.reading import open_trace  # noqa: PLC0415 - slow

    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    progress = Progress("Ctrl-C to end") if is_terminal else None

    def told(events: int) -> None:
        if progress is not None:
            progress.show(f"{file.name}: {events} events")

    try:
        report = analyze(open_trace(file), rows=rows, slowest=rows, of=of, told=told)
    except KeyboardInterrupt:
        raise click.ClickException(f"{file}: interrupted, so that nothing is told") from None
    if progress is not None:
        progress.end(f"{file.name}: {report.events} events")
    return report
