"""``temper trace flight-recorder dump``."""

from pathlib import Path

import click

from temper_core.console import printable, read_settings, settings_option
from temper_core.observed import text
from temper_plugin_tracer.trace.commands import agent_traces


@click.command("dump")
@settings_option
def command(settings_path: Path | None) -> None:
    """Write what the flight recorder holds as a trace, which ends it."""
    settings = read_settings(settings_path)
    entry = agent_traces.flight_recorder("POST", settings, below="/dump")
    click.echo(printable(f"the trace {text(entry, 'id')} is being written"))
