"""``temper trace delete``: end a capture that runs, or delete a finished or failed one."""

from pathlib import Path

import click

from temper_core.console import printable, read_settings, settings_option
from temper_core.observed import text
from temper_plugin_tracer.trace.commands import agent_traces


@click.command("delete")
@click.argument("trace")
@settings_option
def command(trace: str, settings_path: Path | None) -> None:
    """End the capture TRACE if it runs, and keep what there is. Delete it if it is over."""
    settings = read_settings(settings_path)
    known = text(agent_traces.entry(trace, settings), "id")
    answer = agent_traces.delete(known, settings)
    is_deleted = text(answer, "state") == "deleted"
    click.echo(printable(f"{known} {'is deleted' if is_deleted else 'ends, and is kept'}"))
