"""Waits between requests to an API server that fails."""

import random
from collections.abc import Callable

FIRST_S = 0.5
LONGEST_S = 30.0


class Backoff:
    """Waits that double up to a bound. Half of each wait is random.

    The random part spreads the requests of a cluster's nodes. *chance* returns numbers from 0 to 1.
    """

    def __init__(
        self,
        first_s: float = FIRST_S,
        longest_s: float = LONGEST_S,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._chance = chance
        self._failures = 0

    def failed(self, at_least_s: float = 0.0) -> float:
        """Record a failure. Return the wait in seconds, with the server's *at_least_s* added."""
        doubled = self._first_s * 2.0 ** min(self._failures, 32)
        self._failures += 1
        wait_s = min(doubled, self._longest_s) * (0.5 + self._chance() / 2)
        return wait_s + min(max(at_least_s, 0.0), self._longest_s)

    def forget(self) -> None:
        """Start again with the shortest wait."""
        self._failures = 0
