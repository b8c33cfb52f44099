"""A capture in one line: under way, and finished."""

from collections.abc import Mapping
from typing import Any

from temper_core.observed import number, text

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
    told = f", {lost:.0f} lost" if lost else ""
    events, seconds = number(entry, "events") or 0, number(entry, "seconds") or 0.0
    return (
        f"trace {text(entry, 'id')} of {text(entry, 'selection')}: "
        f"{events:.0f} events in {seconds:.2f} s{told}, "
        f"{(number(entry, 'bytes') or 0) / MIB:.1f} MiB, ended by {text(entry, 'ended_by')}"
    )
