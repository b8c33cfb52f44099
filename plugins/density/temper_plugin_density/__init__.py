"""Density: lowers CPU requests in labelled namespaces, and scores nodes for the scheduler."""

from typing import TYPE_CHECKING

from temper_core import Command, MetricFamily, SettingsTable, hookimpl

if TYPE_CHECKING:
    import click

__all__ = ["temper_commands", "temper_metrics", "temper_settings"]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper overcommit`` and ``temper placement``."""
    return [
        Command("overcommit", "Lower the CPU requests of pods as they are made.", _load_overcommit),
        Command("placement", "Score nodes for the cluster's scheduler.", _load_placement),
    ]


@hookimpl
def temper_metrics() -> list[MetricFamily]:
    """Declare what the two services export."""
    from temper_plugin_density.families import OVERCOMMIT, PLACING  # noqa: PLC0415 - for pages only

    return [*OVERCOMMIT, *PLACING]


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare that ``[plugins.density]`` has no keys."""
    return [SettingsTable()]


def _load_overcommit() -> "click.Command":
    from temper_plugin_density.overcommit.command import overcommit  # noqa: PLC0415 - slow

    return overcommit


def _load_placement() -> "click.Command":
    from temper_plugin_density.placement.command import placement  # noqa: PLC0415 - slow

    return placement
