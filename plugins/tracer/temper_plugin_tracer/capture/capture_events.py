"""The events of captures."""

from collections.abc import Mapping
from typing import Any

from temper_core import EventKind, EventLevel

BEGUN = EventKind("trace_begun", "A trace is being captured; the subject is what is captured.")
FINISHED = EventKind("trace_finished", "A trace is captured; the subject is its id.")
FAILED = EventKind("trace_failed", "A trace could not be captured.", level=EventLevel.WARNING)
DELETED = EventKind("trace_deleted", "A kept trace was deleted; the subject is its id.")
ENDED = EventKind(
    "flight_recorder_ended",
    "The flight recorder has ended without a trace; the subject is what it recorded.",
)
KINDS = (BEGUN, FINISHED, FAILED, DELETED, ENDED)


def result_in_words(result: Mapping[str, Any], by: str) -> str:
    """Return what a finished capture has, in one line."""
    lost = f", {result['lost']} lost" if result["lost"] else ""
    cause = f" ({result['cause']})" if result.get("cause") else ""
    return (
        f"{result['events']} events in {result['seconds']:.2f} s{lost}, {result['bytes']} bytes, "
        f"ended by {result['ended_by']}{cause}, asked by {by}"
    )
