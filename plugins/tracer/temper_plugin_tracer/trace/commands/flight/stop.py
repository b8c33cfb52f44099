"""``temper trace flight-recorder stop``."""

from pathlib import Path

import click

from temper_core.console import read_settings, settings_option
from temper_plugin_tracer.trace.commands import agent_traces


@click.command("stop")
@settings_option
def command(settings_path: Path | None) -> None:
    """End the flight recorder without a trace."""
    agent_traces.flight_recorder("DELETE", read_settings(settings_path))
    click.echo("the flight recorder is off")
