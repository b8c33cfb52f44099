"""Lanes of events: each keeps its newest, within a rate."""

from collections import deque

from attrs import define, field

from temper_core.records.events import Event

NEWEST_KEPT = 200
"""Events kept of each lane: a kind of the agent's own, or an instrument."""
BURST = 100
"""Events that a lane takes at once."""
PER_SECOND = 20.0
"""Events that a lane takes in the long run."""
TOLD_EVERY_S = 10.0
"""The shortest time between two records of a lane's dropped events."""


@define(eq=False)
class Lane:
    """The newest events of one kind or of one instrument, with a token bucket for their rate.

    ``dropped`` counts the events dropped since their number was last recorded.
    """

    kept: deque[Event] = field(factory=lambda: deque(maxlen=NEWEST_KEPT))
    dropped: int = 0
    _tokens: float = BURST
    _filled_at: float = 0.0
    _told_at: float = float("-inf")

    def takes(self, now: float) -> bool:
        """Return whether the rate allows one more event now. Count it as dropped if not."""
        earned = (now - self._filled_at) * PER_SECOND if self._filled_at else 0.0
        self._tokens = min(BURST, self._tokens + max(0.0, earned))
        self._filled_at = now
        if self._tokens < 1.0:
            self.dropped += 1
            return False
        self._tokens -= 1.0
        return True

    def dropped_by(self, now: float) -> int:
        """Return the number of dropped events to record now, and reset it."""
        if not self.dropped or now - self._told_at < TOLD_EVERY_S:
            return 0
        self._told_at = now
        count, self.dropped = self.dropped, 0
        return count
