"""``temper trace flight-recorder``: a group whose commands are imported on use."""

from collections.abc import Mapping

import click

from temper_core import CommandGroup

COMMANDS: Mapping[str, str] = {
    "dump": "Write what the flight recorder holds as a trace, which ends it.",
    "start": "Record the newest events for some time, and write them at a violation.",
    "status": "Show whether the flight recorder runs, and what it costs.",
    "stop": "End the flight recorder without a trace.",
}


@click.group(
    "flight-recorder",
    cls=CommandGroup,
    path="temper trace flight-recorder",
    package="temper_plugin_tracer.trace.commands.flight",
    own=COMMANDS,
)
def command() -> None:
    """Keep the scheduler's newest events, and write them as a trace when something happens.

    Exit codes: 0 done, 2 wrong options or a refused request, 3 no agent, or it failed.
    """
