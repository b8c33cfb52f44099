"""``temper trace list``: what the agent has captured."""

from pathlib import Path

import click

from temper_core.console import (
    Column,
    output_option,
    print_json,
    read_settings,
    results_console,
    settings_option,
    table_of,
    watch_options,
)
from temper_core.observed import number
from temper_plugin_tracer.trace.commands import agent_traces
from temper_plugin_tracer.trace.commands.agent_traces import Row
from temper_plugin_tracer.trace.commands.progress_bar import MIB


def _size(row: Row) -> object:
    size = number(row, "bytes")
    return None if size is None else f"{size / MIB:.1f}"


_COLUMNS: tuple[Column, ...] = (
    ("id", lambda row: row.get("id")),
    ("state", lambda row: row.get("state")),
    ("of", lambda row: row.get("selection")),
    ("began", lambda row: row.get("began_at")),
    ("s", lambda row: row.get("seconds", row.get("elapsed_s"))),
    ("events", lambda row: row.get("events")),
    ("lost", lambda row: row.get("lost")),
    ("MiB", _size),
    ("backend", lambda row: row.get("backend")),
    ("ended by", lambda row: row.get("ended_by")),
    ("asked by", lambda row: row.get("by")),
    ("reason", lambda row: row.get("reason")),
)


@click.command("list")
@settings_option
@output_option
@watch_options
def command(settings_path: Path | None, output: str) -> None:
    """List the traces that the agent has, and the capture that runs."""
    entries = agent_traces.entries(read_settings(settings_path))
    if output == "json":
        print_json(list(entries))
        return
    table = table_of("traces", _COLUMNS, entries)
    if table is None:
        click.echo("the agent has no traces")
    else:
        results_console().print(table)
