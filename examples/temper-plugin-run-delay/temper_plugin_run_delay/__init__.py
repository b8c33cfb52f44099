"""An instrument that logs how long pods wait for a CPU, and two commands."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from temper_core import (
    Command,
    Instrument,
    MetricFamily,
    SettingsTable,
    fit_settings,
    hookimpl,
)
from temper_plugin_run_delay.instrument import RUN_DELAY, RunDelay
from temper_plugin_run_delay.lamp import reached_board
from temper_plugin_run_delay.limits import Limits

if TYPE_CHECKING:
    import click

KIB = 1024


@hookimpl
def temper_instruments(settings: Mapping[str, Any]) -> list[Instrument]:
    """Contribute the instrument."""
    limits = fit_settings(settings, Limits, plugin="run-delay")
    opening = partial(RunDelay, limits=limits)
    return [
        Instrument(
            "run-delay",
            opening,
            state_limit_bytes=limits.state_kib * KIB,
            devices=partial(reached_board, limits.lamps),
        )
    ]


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare ``[plugins.run-delay]``."""
    return [SettingsTable(Limits)]


@hookimpl
def temper_metrics() -> list[MetricFamily]:
    """Declare the histogram."""
    return [RUN_DELAY]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper run-delay`` and ``kubectl temper run-delay``."""
    summary = "Show how long the pods of this node wait for a CPU."
    return [
        Command("run-delay", summary, _command),
        Command("run-delay", summary, _command, under="kubectl temper"),
    ]


def _command() -> "click.Command":
    from temper_plugin_run_delay.command import run_delay  # noqa: PLC0415 - loaded when needed

    return run_delay
