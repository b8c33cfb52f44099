"""``temper trace compare``: how runs and waits differ between two traces."""

from pathlib import Path

import click

from temper_core.console import output_option, print_json, results_console
from temper_plugin_tracer.trace.analysis.report import LEVELS
from temper_plugin_tracer.trace.commands.analyze import MOST_ROWS, USUAL_ROWS, read_report

ALL_ROWS = 1 << 22


@click.command("compare")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--by", type=click.Choice(LEVELS), default="pod", show_default=True)
@click.option("--of", default="", help="Only subjects with this text in their name.")
@click.option(
    "--top", type=click.IntRange(1, MOST_ROWS), default=USUAL_ROWS, show_default=True, help="Rows."
)
@output_option
def command(before: Path, after: Path, by: str, of: str, top: int, output: str) -> None:
    """Show how runs and waits differ between two traces.

    BEFORE and AFTER are traces of two times, or of two nodes. Sums are given by the second, so
    that their lengths may differ.
    """
    show_comparison(before, after, by=by, of=of, top=top, output=output)


def show_comparison(before: Path, after: Path, *, by: str, of: str, top: int, output: str) -> None:
    """Print how runs and waits differ between two traces. Raises InputError for a bad one."""
    from attrs import asdict  # noqa: PLC0415 - slow

    from temper_plugin_tracer.trace.analysis.comparison import changes  # noqa: PLC0415 - slow
    from temper_plugin_tracer.trace.commands.showing import (  # noqa: PLC0415 - slow
        change_table,
        headline,
    )

    old, new = read_report(before, ALL_ROWS, of), read_report(after, ALL_ROWS, of)
    found = changes(old, new, by)[:top]
    if output == "json":
        document = {
            "by": by,
            "before": headline(old),
            "after": headline(new),
            "changes": [asdict(change) for change in found],
        }
        print_json(document)
        return
    for file, report in ((before, old), (after, new)):
        click.echo(f"{file.name}: {headline(report)}")
    results_console().print(change_table(found, by))
