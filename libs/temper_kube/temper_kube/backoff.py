"""How long to wait before an API server that fails is asked again."""

import random
from collections.abc import Callable

FIRST_S = 0.5
LONGEST_S = 30.0


class Backoff:
    """Waits that double up to a bound. Half of each is random.

    Chance keeps the nodes of a cluster from coming back together. *chance* returns numbers from 0
    to 1.
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
        """Record a failure. Return how long to wait, *at_least_s* where the server asks for it."""
        doubled = self._first_s * 2.0 ** min(self._failures, 32)
        self._failures += 1
        wait_s = min(doubled, self._longest_s) * (0.5 + self._chance() / 2)
        return wait_s + min(at_least_s, self._longest_s)

    def forget(self) -> None:
        """Begin with the shortest wait again."""
        self._failures = 0
