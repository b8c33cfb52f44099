"""Power profiles of workloads, for power-aware placement."""

from typing import TYPE_CHECKING

from temper_core import Command, SettingsTable, hookimpl

if TYPE_CHECKING:
    import click

__all__ = ["temper_commands", "temper_settings"]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper power``."""
    return [Command("power", "Classify workloads for power-aware placement.", _load_command)]


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare ``[plugins.power]``."""
    from temper_plugin_power.settings.power import PowerSettings  # noqa: PLC0415 - with plugins only

    return [SettingsTable(PowerSettings)]


def _load_command() -> "click.Command":
    from temper_plugin_power.commands.power import command  # noqa: PLC0415 - slow

    return command
