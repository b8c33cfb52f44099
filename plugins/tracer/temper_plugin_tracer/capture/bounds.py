"""The bounds of a capture, and what ended it."""

from enum import StrEnum
from typing import Final

from attrs import field, frozen
from attrs.validators import ge, le

MIB: Final = 1024 * 1024
USUAL_S, LEAST_S, LONGEST_S = 5.0, 0.1, 30.0
USUAL_BYTES, LEAST_BYTES, MOST_BYTES = 32 * MIB, MIB // 4, 128 * MIB
MOST_EVENTS = 16_000_000
MOST_KEPT = 4
MOST_KEPT_BYTES = 256 * MIB
LEAST_FREE_BYTES = 256 * MIB
"""Free space of the file system that a capture leaves to others."""


class Ending(StrEnum):
    """The cause of a capture's end."""

    SECONDS = "seconds"
    BYTES = "bytes"
    EVENTS = "events"
    DISK = "disk"
    """The file system came near its end."""
    ASKED = "asked"
    """A request ended it."""
    VIOLATION = "violation"
    """A violation of the linter, for which a flight recorder had waited."""
    BUDGET = "budget"
    """A flight recorder took more CPU time than it may."""


@frozen
class Bounds:
    """Whichever is reached first ends the capture.

    Attributes:
        seconds: Duration of the recording.
        bytes: Size of the finished file. It is never exceeded.
        events: Number of events in the file. It is never exceeded.
        free_bytes: Free space that is left on the file system.

    """

    seconds: float = field(default=USUAL_S, validator=[ge(LEAST_S), le(LONGEST_S)])
    bytes: int = field(default=USUAL_BYTES, validator=[ge(LEAST_BYTES), le(MOST_BYTES)])
    events: int = field(default=MOST_EVENTS, validator=[ge(1), le(MOST_EVENTS)])
    free_bytes: int = field(default=LEAST_FREE_BYTES, validator=ge(0))
