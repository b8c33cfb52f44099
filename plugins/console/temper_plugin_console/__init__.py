"""Watch a node on a terminal: top, the map of its CPUs, and what changed between two snapshots."""

from temper_core import Command, hookimpl


@hookimpl
def temper_commands() -> list[Command]:
    """Add no command yet."""
    return []
