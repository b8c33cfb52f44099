"""Density: lowers CPU requests in labelled namespaces, and scores nodes for the scheduler."""

from typing import TYPE_CHECKING

from temper_core import Command, hookimpl

if TYPE_CHECKING:
    import click

__all__ = ["temper_commands"]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper overcommit`` and ``temper placement``."""
    return [
        Command("overcommit", "Lower the CPU requests of pods as they are made.", _load_overcommit),
        Command("placement", "Score nodes for the cluster's scheduler.", _load_placement),
    ]


def _load_overcommit() -> "click.Command":
    from temper_plugin_density.overcommit.command import overcommit  # noqa: PLC0415 - slow

    return overcommit


def _load_placement() -> "click.Command":
    from temper_plugin_density.placement.command import placement  # noqa: PLC0415 - slow

    return placement
