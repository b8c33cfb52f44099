"""Typed events of this node, kept by the agent in order."""

from enum import StrEnum

from attrs import field, frozen
from attrs.validators import in_

from temper_core.records.names import SNAKE_NAME, is_summary

LONGEST_SUBJECT = 200
"""Characters. Longer text is truncated."""
LONGEST_REASON = 500
"""Characters. Longer text is truncated."""


class EventLevel(StrEnum):
    """The severity of an event for an operator."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@frozen
class EventKind:
    """A kind of event that the agent or an instrument records. ``name`` is in snake_case."""

    name: str = field(validator=SNAKE_NAME)
    summary: str = field(validator=is_summary)
    level: str = field(default=EventLevel.INFO, validator=in_(list(EventLevel)))


@frozen
class Event:
    """One event.

    Attributes:
        number: Its place in the record of this node. It grows by one and survives a restart.
        at: Its time in wall-clock seconds.
        kind: The name of an ``EventKind``.
        subject: The object of the event: a pod's key, a layer, a plugin, an invariant's subject.
        reason: The reason, in one line.
        source: ``agent``, or the name of the instrument that recorded it.
        requester: The sender of the request, if there was one: ``socket uid 0``, ``token ops``.
        outcome: The result of a request: ``done``, or why it was refused.

    """

    number: int
    at: float
    kind: str
    subject: str = ""
    reason: str = ""
    source: str = "agent"
    requester: str = ""
    outcome: str = ""
    level: str = EventLevel.INFO
