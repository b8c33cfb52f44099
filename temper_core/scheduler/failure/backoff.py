"""How long to stay away after the engine failed, and when to stop trying."""

import random
from collections import deque
from collections.abc import Callable

from temper_core.settings.models import SchedulerSettings

HOUR_S = 3600.0
JITTER = 0.2


class Backoff:
    """Counts failures within an hour. The wait doubles with each, give or take a fifth.

    The jitter keeps the nodes of a cluster from trying again in step. *chance* returns numbers
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
        """Note a failure."""
        self._failures.append(now)

    def forget(self) -> None:
        """Start afresh, as an operator asks for."""
        self._failures.clear()

    def recent(self, now: float) -> int:
        """Return the failures of the last hour."""
        while self._failures and self._failures[0] <= now - HOUR_S:
            self._failures.popleft()
        return len(self._failures)

    def is_exhausted(self, now: float) -> bool:
        """Return whether the hour's budget of failures is used up."""
        return self.recent(now) >= self._budget

    def until_budget_s(self, now: float) -> float:
        """Return how long until the hour's budget has room for a failure again."""
        if not self.is_exhausted(now):
            return 0.0
        return self._failures[-self._budget] + HOUR_S - now

    def delay_s(self, now: float) -> float:
        """Return how long to wait after the failures so far. 0 without any."""
        recent = self.recent(now)
        if not recent:
            return 0.0
        doubled = self._first_s * 2.0 ** min(recent - 1, 32)
        return min(doubled, self.limit_s) * (1 - JITTER + 2 * JITTER * self._chance())


def backoff_for(limits: SchedulerSettings, chance: Callable[[], float]) -> Backoff:
    """Return a back-off as the settings want it, that has seen no failure."""
    return Backoff(limits.backoff_s, limits.backoff_limit_s, limits.crash_budget, chance=chance)
