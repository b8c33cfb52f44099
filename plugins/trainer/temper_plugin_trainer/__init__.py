"""Records the threads of a workload, and tests profiles on what was recorded."""

from temper_core import Command, hookimpl


@hookimpl
def temper_commands() -> list[Command]:
    """Add no command yet."""
    return []
