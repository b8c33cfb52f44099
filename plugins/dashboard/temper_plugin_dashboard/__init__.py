"""A page on every agent that shows its node."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from temper_core import (
    Instrument,
    InstrumentContext,
    OpenInstrument,
    SettingsTable,
    fit_settings,
    hookimpl,
)
from temper_plugin_dashboard.options import Options

__all__ = ["temper_instruments", "temper_settings"]

NAME = "dashboard"


@hookimpl
def temper_instruments(settings: Mapping[str, Any]) -> list[Instrument]:
    """Contribute the page at ``/``."""
    return [Instrument(NAME, partial(_open, fit_settings(settings, Options, plugin=NAME)))]


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare ``[plugins.dashboard]``."""
    return [SettingsTable(Options)]


def _open(options: Options, _context: InstrumentContext) -> OpenInstrument:
    from temper_plugin_dashboard.instrument import Dashboard  # noqa: PLC0415 - agent only

    return Dashboard(options)
