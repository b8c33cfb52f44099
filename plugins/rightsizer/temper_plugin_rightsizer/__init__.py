"""Requests and limits of containers from the demand of their threads."""

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
from temper_plugin_rightsizer.families import FAMILIES
from temper_plugin_rightsizer.options import MIB, Options

if TYPE_CHECKING:
    import click

__all__ = ["temper_commands", "temper_instruments", "temper_metrics", "temper_settings"]

NAME = "rightsizer"


@hookimpl
def temper_instruments(settings: Mapping[str, Any]) -> list[Instrument]:
    """Contribute the history of demand, and ``/rightsize``."""
    options = fit_settings(settings, Options, plugin=NAME)
    # A damaged file is kept beside the history for a look, and that of another version for later.
    limit_bytes = 3 * options.history_mib * MIB
    return [Instrument(NAME, partial(_open, options), state_limit_bytes=limit_bytes)]


@hookimpl
def temper_metrics() -> list[MetricFamily]:
    """Declare the families."""
    return list(FAMILIES)


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare ``[plugins.rightsizer]``."""
    return [SettingsTable(Options)]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper rightsize``, and that of ``kubectl temper``."""
    summary = "Recommend requests and limits from the demand of threads."
    cluster = "Recommend requests and limits of a cluster's workloads."
    return [
        Command("rightsize", summary, _load_command),
        Command("rightsize", cluster, _load_cluster, under="kubectl temper"),
        Command("resize", "Apply a report of rightsize.", _load_resize, under="kubectl temper"),
    ]


def _open(options: Options, context: InstrumentContext) -> OpenInstrument:
    from temper_plugin_rightsizer.node.instrument import Rightsizer  # noqa: PLC0415 - agent only

    return Rightsizer.of(options, context)


def _load_cluster() -> "click.Command":
    from temper_plugin_rightsizer.commands.cluster import command  # noqa: PLC0415 - slow

    return command


def _load_resize() -> "click.Command":
    from temper_plugin_rightsizer.commands.resize import command  # noqa: PLC0415 - slow

    return command


def _load_command() -> "click.Command":
    from temper_plugin_rightsizer.commands.rightsize import command  # noqa: PLC0415 - slow

    return command
