"""Density: lower CPU requests where a namespace asks for it, and scores for the scheduler."""

from temper_core import Command, hookimpl

__all__ = ["temper_commands"]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper overcommit`` and ``temper placement``."""
    return []
