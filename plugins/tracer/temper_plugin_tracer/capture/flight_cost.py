"""The cost of the flight recorder over time, held against its budget."""

from collections import deque

from attrs import define, field, frozen

OUTSIDE_NS = 85
"""Cost of an event besides what the program times: entering it and returning. ``bench/wakes.py``
measured 50 to 94."""
OVER_S = 5.0
"""The budget is held over so many seconds."""
NS_PER_S = 1_000_000_000


@frozen
class KernelTally:
    """The counters of the programs.

    Attributes:
        events: Recorded events, overwritten ones included.
        passed: Events that the selection left out.
        timed: Recorded events that were timed.
        timed_ns: What these took from the reading of the clock on.

    """

    events: int = 0
    passed: int = 0
    timed: int = 0
    timed_ns: int = 0

    @property
    def seconds(self) -> float:
        """CPU time of all events, extrapolated from the timed ones."""
        mean_ns = self.timed_ns / self.timed if self.timed else 0.0
        whole_ns = self.events * mean_ns + (self.events + self.passed) * OUTSIDE_NS
        return whole_ns / NS_PER_S


@define
class CostMeter:
    """A mean over the last ``OVER_S`` of what is noted."""

    _noted: deque[tuple[float, float]] = field(factory=deque)

    def note(self, now_s: float, cost_s: float) -> None:
        """Take the whole cost so far, at *now_s* of a clock."""
        self._noted.append((now_s, cost_s))
        while len(self._noted) > 2 and self._noted[1][0] <= now_s - OVER_S:  # noqa: PLR2004 - a pair
            self._noted.popleft()

    @property
    def ratio(self) -> float:
        """The share of one core."""
        if not self._noted:
            return 0.0
        (first_s, first), (last_s, last) = self._noted[0], self._noted[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else 0.0

    def is_over(self, ratio: float) -> bool:
        """Whether the mean of at least ``OVER_S`` exceeds *ratio*."""
        spans = bool(self._noted) and self._noted[-1][0] - self._noted[0][0] >= OVER_S
        return spans and self.ratio > ratio
