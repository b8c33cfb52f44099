"""Power profiles of workloads, for power-aware placement."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from temper_core import (
    Command,
    Instrument,
    InstrumentContext,
    MetricFamily,
    OpenInstrument,
    SettingsTable,
    ValueHolder,
    fit_settings,
    hookimpl,
)

if TYPE_CHECKING:
    import click

    from temper_plugin_power.settings.node import NodeSettings

__all__ = ["temper_commands", "temper_instruments", "temper_metrics", "temper_settings"]

NAME = "power"
STATE_BYTES = 1024 * 1024
"""The record of changed limits, and nothing else."""


@hookimpl
def temper_instruments(settings: Mapping[str, Any]) -> list[Instrument]:
    """Contribute the readings of the node's power, and its caps."""
    from temper_plugin_power.settings.power import PowerSettings  # noqa: PLC0415 - with plugins only

    node = fit_settings(settings, PowerSettings, plugin=NAME).node
    return [
        Instrument(
            NAME, partial(_open, node), state_limit_bytes=STATE_BYTES, devices=_open_gpu_limits
        )
    ]


@hookimpl
def temper_metrics() -> list[MetricFamily]:
    """Declare what the agent and the servers export."""
    from temper_plugin_power.families.extender import EXTENDER  # noqa: PLC0415 - the same
    from temper_plugin_power.families.operator import OPERATOR  # noqa: PLC0415 - for pages only
    from temper_plugin_power.node.families import FAMILIES  # noqa: PLC0415 - the same

    return [*FAMILIES, *OPERATOR, *EXTENDER]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper power``, and that of ``kubectl temper``."""
    views = "Show power profiles of workloads and the state of nodes."
    return [
        Command("power", "Classify workloads for power-aware placement.", _load_command),
        Command("power", views, _load_views, under="kubectl temper"),
    ]


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare ``[plugins.power]``."""
    from temper_plugin_power.settings.power import PowerSettings  # noqa: PLC0415 - with plugins only

    return [SettingsTable(PowerSettings)]


def _open(settings: "NodeSettings", context: InstrumentContext) -> OpenInstrument:
    from temper_plugin_power.node.instrument import PowerNode  # noqa: PLC0415 - for an agent only

    return PowerNode.of(settings, context)


def _open_gpu_limits() -> AbstractContextManager[ValueHolder]:
    from temper_plugin_power.node.gpu_limits import opened_limits  # noqa: PLC0415 - to restore only

    return opened_limits()


def _load_views() -> "click.Command":
    from temper_plugin_power.commands.kubectl_power import command  # noqa: PLC0415 - slow

    return command


def _load_command() -> "click.Command":
    from temper_plugin_power.commands.power import command  # noqa: PLC0415 - slow

    return command
