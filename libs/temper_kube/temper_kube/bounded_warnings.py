"""Warnings about objects of a cluster, some in an hour for each namespace."""

import time
from collections import defaultdict, deque
from collections.abc import Callable

MOST_WARNINGS = 20
MOST_NAMESPACES = 1000
HOUR_S = 3600.0


class BoundedWarnings:
    """Allows ``MOST_WARNINGS`` in an hour for each namespace.

    Whoever may create objects in one namespace can make any number of them that cannot be read.
    They must silence nothing about the objects of others. Namespaces after the first
    ``MOST_NAMESPACES`` share one allowance.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: defaultdict[str, deque[float]] = defaultdict(
            lambda: deque(maxlen=MOST_WARNINGS)
        )

    def allows(self, namespace: object) -> bool:
        """Whether one more warning about *namespace* may be logged now. It counts then."""
        key = namespace if isinstance(namespace, str) else ""
        if key not in self._told and len(self._told) >= MOST_NAMESPACES:
            key = ""
        told, now = self._told[key], self._clock()
        if len(told) == MOST_WARNINGS and now - told[0] < HOUR_S:
            return False
        told.append(now)
        return True
