"""Watch a node on a terminal: top, the map of its CPUs, and changes between two snapshots."""

from typing import TYPE_CHECKING

from temper_core import Command, SettingsTable, hookimpl

if TYPE_CHECKING:
    import click

__all__ = ["temper_commands", "temper_settings"]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper diff``, ``temper map`` and ``temper top``."""
    return [
        Command("diff", "Show the changes between two snapshots.", _load_diff),
        Command("map", "Draw the CPUs by core with their threads.", _load_map),
        Command("top", "Watch pods, layers and threads.", _load_top),
    ]


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare that ``[plugins.console]`` has no keys."""
    return [SettingsTable()]


def _load_diff() -> "click.Command":
    from temper_plugin_console.diff import command

    return command


def _load_map() -> "click.Command":
    from temper_plugin_console.map import command

    return command


def _load_top() -> "click.Command":
    from temper_plugin_console.top import command

    return command
