"""Windows of wake-ups, waits and blocking between the threads of a node, seen by BPF."""

from temper_core import Command, hookimpl


@hookimpl
def temper_commands() -> list[Command]:
    """Add no command yet."""
    return []
