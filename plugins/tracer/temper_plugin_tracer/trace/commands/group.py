"""``temper trace``: a group whose commands are imported on use."""

from collections.abc import Mapping

import click

from temper_core import CommandGroup

COMMANDS: Mapping[str, str] = {
    "analyze": "Show run times, waits, and the threads that ran meanwhile, from a trace.",
    "capture": "Capture the scheduler's events of this node, or of a pod, as a trace for Perfetto.",
    "compare": "Show how runs and waits differ between two traces.",
    "delete": "End a capture that runs, or delete a finished trace or a failed capture.",
    "fetch": "Copy a finished trace from the agent into a file.",
    "flight-recorder": "Keep the newest events, and write them as a trace at a violation.",
    "list": "List the traces that the agent has, and the capture that runs.",
}


@click.group(
    "trace",
    cls=CommandGroup,
    path="temper trace",
    package="temper_plugin_tracer.trace.commands",
    own=COMMANDS,
)
def command() -> None:
    """Capture traces of the kernel's scheduler, and analyze them.

    Exit codes: 0 done, 2 wrong options or a refused request, 3 no agent, or nothing was captured.
    """
