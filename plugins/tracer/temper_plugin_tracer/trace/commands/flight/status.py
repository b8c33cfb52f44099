"""``temper trace flight-recorder status``."""

from pathlib import Path

import click

from temper_core.console import (
    output_option,
    print_json,
    printable,
    read_settings,
    settings_option,
    watch_options,
)
from temper_core.observed import number, table, text
from temper_plugin_tracer.trace.commands import agent_traces
from temper_plugin_tracer.trace.commands.agent_traces import Row


@click.command("status")
@settings_option
@output_option
@watch_options
def command(settings_path: Path | None, output: str) -> None:
    """Show whether the flight recorder runs, and what it costs."""
    state = agent_traces.flight_recorder("GET", read_settings(settings_path))
    if output == "json":
        print_json(dict(state))
    else:
        for line in lines_of(state):
            click.echo(printable(line))


def lines_of(state: Row) -> list[str]:
    """Return the state in lines."""
    if not state.get("is_on"):
        return ["the flight recorder is off"]
    asked = table(state, "asked")
    names = asked.get("violations")
    waits_for = ", ".join(map(str, names)) if isinstance(names, list) else ""
    left_s, kept_s = number(state, "remaining_s") or 0.0, number(asked, "kept_seconds") or 0.0
    cost, budget = number(state, "cpu_ratio") or 0.0, number(asked, "cpu_ratio") or 0.0
    held_s = number(state, "held_s") or 0.0
    return [
        f"the flight recorder runs: trace {text(state, 'id')} of {text(state, 'selection')}",
        f"  asked by   {text(state, 'by')}, for {left_s:.0f} s more",
        f"  keeps      the last {kept_s:g} s; its ring holds {held_s:.1f} s",
        f"  costs      {cost:.2%} of a core, of {budget:.2%}",
        f"  waits for  {waits_for or '-'}, or 'temper trace flight-recorder dump'",
    ]
