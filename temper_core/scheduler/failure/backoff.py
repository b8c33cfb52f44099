"""The wait after an engine failure, and the budget of failures per hour."""

import random
from collections import deque
from collections.abc import Callable

from temper_core.settings.models import SchedulerSettings

HOUR_S = 3600.0
JITTER = 0.2


class Backoff:
    """Counts the failures of the last hour. The wait doubles with each, within 20 % of jitter.

    The jitter keeps the nodes of a cluster from retrying in step. *chance* returns a number
    from 0 to 1.
    """

    def __init__(
        self,
        first_s: float,
        limit_s: float,
        budget: int,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.limit_s = limit_s
        self._first_s = first_s
        self._budget = budget
        self._chance = chance
        self._failures: deque[float] = deque(maxlen=max(budget, 64))

    def failed(self, now: float) -> None:
        """Record a failure at *now*, in seconds."""
        self._failures.append(now)

    def forget(self) -> None:
        """Drop all recorded failures, as an operator requested."""
        self._failures.clear()

    def recent(self, now: float) -> int:
        """Return the number of failures within the last hour."""
        while self._failures and self._failures[0] <= now - HOUR_S:
            self._failures.popleft()
        return len(self._failures)

    def is_exhausted(self, now: float) -> bool:
        """Return whether the hour's budget of failures is used up."""
        return self.recent(now) >= self._budget

    def until_budget_s(self, now: float) -> float:
        """Return the seconds until the hour's budget allows a failure again."""
        if not self.is_exhausted(now):
            return 0.0
        return self._failures[-self._budget] + HOUR_S - now

    def delay_s(self, now: float) -> float:
        """Return the seconds to wait after the failures so far, 0 without any."""
        recent = self.recent(now)
        if not recent:
            return 0.0
        doubled = self._first_s * 2.0 ** min(recent - 1, 32)
        return min(doubled, self.limit_s) * (1 - JITTER + 2 * JITTER * self._chance())


def backoff_for(limits: SchedulerSettings, chance: Callable[[], float]) -> Backoff:
    """Return an empty back-off with the bounds of the settings."""
    return Backoff(limits.backoff_s, limits.backoff_limit_s, limits.crash_budget, chance=chance)
