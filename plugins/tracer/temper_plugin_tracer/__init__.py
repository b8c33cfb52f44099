"""Windows of wake-ups, waits and blocking between the threads of a node, seen by BPF."""

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
from temper_plugin_tracer.families import FAMILIES
from temper_plugin_tracer.options import Options

if TYPE_CHECKING:
    import click

__all__ = ["temper_commands", "temper_instruments", "temper_metrics", "temper_settings"]

NAME = "tracer"
CAPTURES = "trace"
STATE_BYTES = (256 + 8) * 1024 * 1024
"""The traces that are kept, and notes of a few MiB beside them."""


@hookimpl
def temper_instruments(settings: Mapping[str, Any]) -> list[Instrument]:
    """Contribute the windows, ``/wakes`` with metrics of waits, and captures, ``/trace``."""
    options = fit_settings(settings, Options, plugin=NAME)
    return [
        Instrument(NAME, partial(_open, options)),
        Instrument(CAPTURES, partial(_open_captures, options), state_limit_bytes=STATE_BYTES),
    ]


@hookimpl
def temper_metrics() -> list[MetricFamily]:
    """Declare the families of the windows."""
    return list(FAMILIES)


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare ``[plugins.tracer]``."""
    return [SettingsTable(Options)]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper wakes``, the group ``temper trace``, and both of ``kubectl temper``."""
    wakes = "Show which threads wake each other, and which wait for a CPU behind others."
    trace = "Capture traces of the kernel's scheduler, and analyze them."
    remote = "Capture a pod on its node as a trace for Perfetto."
    compare = "Capture two pods, and show how their runs and waits differ."
    return [
        Command("wakes", wakes, _load_command),
        Command("trace", trace, _load_group),
        Command("trace", remote, _load_remote, under="kubectl temper"),
        Command("trace-compare", compare, _load_comparison, under="kubectl temper"),
    ]


def _open(options: Options, context: InstrumentContext) -> OpenInstrument:
    from temper_plugin_tracer.instrument import Tracer  # noqa: PLC0415 - for an agent only

    return Tracer.of(options, context)


def _open_captures(options: Options, context: InstrumentContext) -> OpenInstrument:
    from temper_plugin_tracer.capture.instrument import TraceCaptures  # noqa: PLC0415 - the same

    return TraceCaptures.of(context, options.backend)


def _load_command() -> "click.Command":
    from temper_plugin_tracer.command import command  # noqa: PLC0415 - slow

    return command


def _load_group() -> "click.Command":
    from temper_plugin_tracer.trace.commands.group import command  # noqa: PLC0415 - slow

    return command


def _load_remote() -> "click.Command":
    from temper_plugin_tracer.remote.command import command  # noqa: PLC0415 - slow

    return command


def _load_comparison() -> "click.Command":
    from temper_plugin_tracer.remote.compare_command import command  # noqa: PLC0415 - slow

    return command
