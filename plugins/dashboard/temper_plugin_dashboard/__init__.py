"""A page on every agent that shows its node, and a server with a page of all nodes."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from temper_core import (
    Command,
    Instrument,
    InstrumentContext,
    MetricFamily,
    OpenInstrument,
    SettingsTable,
    fit_settings,
    hookimpl,
)
from temper_plugin_dashboard.options import Options

if TYPE_CHECKING:
    import click

__all__ = ["temper_commands", "temper_instruments", "temper_metrics", "temper_settings"]

NAME = "dashboard"


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper dashboard``."""
    return [Command("dashboard", "Show all nodes of a cluster on one page.", _load_dashboard)]


@hookimpl
def temper_instruments(settings: Mapping[str, Any]) -> list[Instrument]:
    """Contribute the page at ``/``."""
    return [Instrument(NAME, partial(_open, fit_settings(settings, Options, plugin=NAME)))]


@hookimpl
def temper_metrics() -> list[MetricFamily]:
    """Declare what the server of ``temper dashboard`` exports."""
    from temper_plugin_dashboard.fleet.families import FAMILIES  # noqa: PLC0415 - for pages only

    return list(FAMILIES)


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare ``[plugins.dashboard]``."""
    return [SettingsTable(Options)]


def _open(options: Options, context: InstrumentContext) -> OpenInstrument:
    from temper_plugin_dashboard.instrument import Dashboard  # noqa: PLC0415 - agent only

    return Dashboard(options, context.lookup)


def _load_dashboard() -> "click.Command":
    from temper_plugin_dashboard.fleet.command import dashboard  # noqa: PLC0415 - slow

    return dashboard
