"""The capture that runs, and the refusal of a second one."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import asdict, define, field, frozen

from temper_core import Event, HelperProcess, InputError, rfc3339
from temper_plugin_tracer.capture.node_notes import MOST_EVENTS, MOST_LOOKS, event_note
from temper_plugin_tracer.capture.request import TraceRequest
from temper_plugin_tracer.capture.selection import Selection


@frozen
class Holder:
    """The requester of the running capture, for the refusal of a second request."""

    id: str
    by: str
    remaining_s: float
    kind: str = ""

    def document(self) -> dict[str, Any]:
        """Return the body of the refusal."""
        what = f"the {self.kind} runs for" if self.kind else "a trace is being captured by"
        error = f"{what} {self.by}, for {self.remaining_s:.0f} s more"
        return {
            "error": error,
            "id": self.id,
            "held_by": self.by,
            "remaining_s": round(self.remaining_s, 1),
        }


class HeldError(InputError):
    """A capture is refused because another one runs."""

    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        super().__init__(holder.document()["error"])


@define(eq=False)
class Running:
    """A capture that is recorded or written.

    Attributes:
        is_ending: Whether the helper has the order to end the recording.
        end_order: The content of the order's file, until the disk has taken it. Empty without one.

    """

    id: str
    by: str
    request: TraceRequest
    selection: Selection
    began_at: float
    began_s: float
    helper: HelperProcess
    is_ending: bool = False
    stopped_by: str = ""
    end_order: bytes = b""
    looks: deque[Mapping[str, Any]] = field(factory=lambda: deque(maxlen=MOST_LOOKS))
    events: deque[Mapping[str, Any]] = field(factory=lambda: deque(maxlen=MOST_EVENTS))
    last_event: int = 0

    def add_events(self, newer: Sequence[Event]) -> None:
        """Keep *newer* events for the trace."""
        self.events.extend(map(event_note, newer))
        self.last_event = newer[-1].number if newer else self.last_event

    def remaining_s(self, now: float) -> float:
        """Return for how long it may still record."""
        return max(0.0, self.began_s + self.request.seconds - now) if not self.is_ending else 0.0

    def holder(self, now: float) -> Holder:
        """Return it as the reason to refuse a second request."""
        kind = str(self.request.plan.shown.get("kind", ""))
        return Holder(self.id, self.by, self.remaining_s(now), kind)

    def document(self, now: float) -> dict[str, Any]:
        """Return it as an entry of ``/traces``."""
        remaining_s = self.remaining_s(now)
        return {
            **self.request.plan.shown,
            "id": self.id,
            "state": "recording" if remaining_s else "writing",
            "by": self.by,
            "selection": self.selection.shown,
            "began_at": rfc3339(self.began_at),
            "elapsed_s": round(now - self.began_s, 1),
            "remaining_s": round(remaining_s, 1),
            "asked": asdict(self.request),
        }
