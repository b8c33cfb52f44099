"""``temper trace fetch``: copy a finished trace from the agent."""

from pathlib import Path

import click

from temper_core.console import Progress, read_settings, settings_option
from temper_plugin_tracer.trace.commands import agent_traces


@click.command("fetch")
@click.argument("trace")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file. TRACE.pftrace without it.",
)
@settings_option
def command(trace: str, out: Path | None, settings_path: Path | None) -> None:
    """Copy the finished TRACE from the agent into a file."""
    settings = read_settings(settings_path)
    capture = agent_traces.entry(trace, settings)["id"]
    path = out or Path(f"{capture}.pftrace")
    progress = Progress()
    size = agent_traces.fetch(capture, path, settings, progress.show)
    progress.end(f"{path}: {size} bytes")
