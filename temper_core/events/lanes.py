"""Lanes of events: each keeps its newest, and takes only so many a second."""

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
"""How often the dropped events of a lane are recorded, at most."""


@define(eq=False)
class Lane:
    """The newest events of one kind, or of one instrument, and the account of their rate.

    ``dropped`` are those since the last time that it was recorded how many there were.
    """

    kept: deque[Event] = field(factory=lambda: deque(maxlen=NEWEST_KEPT))
    dropped: int = 0
    _tokens: float = BURST
    _filled_at: float = 0.0
    _told_at: float = float("-inf")

    def takes(self, now: float) -> bool:
        """Whether there is room for one more event now. Counts it as dropped where not."""
        earned = (now - self._filled_at) * PER_SECOND if self._filled_at else 0.0
        self._tokens = min(BURST, self._tokens + max(0.0, earned))
        self._filled_at = now
        if self._tokens < 1.0:
            self.dropped += 1
            return False
        self._tokens -= 1.0
        return True

    def dropped_by(self, now: float) -> int:
        """Return how many dropped events to record now, and begin to count anew."""
        if not self.dropped or now - self._told_at < TOLD_EVERY_S:
            return 0
        self._told_at = now
        count, self.dropped = self.dropped, 0
        return count
