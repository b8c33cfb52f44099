"""``temper trace fetch``: copy a finished trace from the agent."""

from pathlib import Path

import click

from temper_core import InputError
from temper_core.console import Progress, print_bytes, read_settings, settings_option
from temper_core.observed import number, text
from temper_plugin_tracer.trace.commands import agent_traces
from temper_plugin_tracer.trace.commands.destination import STANDARD_OUTPUT


@click.command("fetch")
@click.argument("trace")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="The file, - for standard output. TRACE.pftrace without it.",
)
@click.option(
    "--offset",
    type=click.IntRange(0),
    default=0,
    help="Begin at this byte. Only with --out -.",
)
@settings_option
def command(trace: str, out: Path | None, offset: int, settings_path: Path | None) -> None:
    """Copy the finished TRACE from the agent into a file."""
    settings = read_settings(settings_path)
    is_printed = out == STANDARD_OUTPUT
    if offset and not is_printed:
        raise InputError("--offset is only for --out -")
    entry = agent_traces.entry(trace, settings)
    capture, whole = text(entry, "id"), number(entry, "bytes")
    if whole is not None and offset > whole:
        where = f"--offset {offset} is beyond the end of the trace {capture}"
        raise InputError(f"{where}, which has {whole:.0f} bytes")
    if is_printed:
        agent_traces.copy(capture, print_bytes, settings, offset=offset)
        return
    path = out or Path(f"{capture}.pftrace")
    progress = Progress()
    size = agent_traces.fetch(capture, path, settings, progress.show)
    progress.end(f"{path}: {size} bytes")
