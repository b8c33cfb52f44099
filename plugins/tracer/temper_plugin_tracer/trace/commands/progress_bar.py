"""A capture in one line: under way, and finished."""

from collections.abc import Mapping
from typing import Any

from temper_core.observed import number, text
from temper_plugin_tracer.capture.backend_names import NAMES, reasons_in_words

BAR = 30
MIB = 1024 * 1024


def bar(elapsed_s: float, whole_s: float) -> str:
    """Return the progress of a recording of *whole_s* seconds. Afterwards the trace is written."""
    if elapsed_s >= whole_s:
        return "writing the trace"
    full = round(BAR * elapsed_s / whole_s)
    return f"recording [{'#' * full}{'.' * (BAR - full)}] {whole_s - elapsed_s:.0f} s"


def in_words(entry: Mapping[str, Any]) -> str:
    """Return the entry of a finished capture in one line."""
    lost = number(entry, "lost") or 0
    losses = f", {lost:.0f} lost" if lost else ""
    events, seconds = number(entry, "events") or 0, number(entry, "seconds") or 0.0
    return (
        f"trace {text(entry, 'id')} of {text(entry, 'selection')}: "
        f"{events:.0f} events in {seconds:.2f} s{losses}, "
        f"{(number(entry, 'bytes') or 0) / MIB:.1f} MiB, ended by {text(entry, 'ended_by')}"
        f"{_by_which(entry)}"
    )


def _by_which(entry: Mapping[str, Any]) -> str:
    """Return the backend, and why earlier ones did not record. Empty for the usual one."""
    backend, refused = text(entry, "backend"), entry.get("refused")
    if not backend or backend == NAMES[0]:
        return ""
    reasons = f" ({reasons_in_words(refused)})" if isinstance(refused, dict) and refused else ""
    return f", recorded by {backend}{reasons}"
