"""The state of one watch, for metrics and readiness."""

import threading
import time
from collections.abc import Callable

from temper_core import Staleness

SILENT_S = 80.0
"""A server sends a bookmark each minute. A watch without any for so long delivers nothing."""


class WatchStatus:
    """Whether a watch is up, and otherwise for how long and why it is down.

    While it is up, changes arrive at once. A watch that follows a silent one, for instance behind a
    proxy that holds answers back, is up once something was heard. ``reason`` is the last failure.
    ``has_listed`` is set by the first list, and stays set.
    """

    def __init__(self, resource: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.resource = resource
        self.has_listed = threading.Event()
        self.reason = "no request was sent yet"
        self.restarts = 0
        self.lists = 0
        self._clock = clock
        self._current_at = self._began_at = clock()
        self._is_open = self._has_heard = self._was_silent = False

    @property
    def is_up(self) -> bool:
        """Whether changes arrive."""
        return self._is_open and not self._was_silent

    def listed(self) -> None:
        """Record a list: the data are current as of now."""
        self.lists += 1
        self._current_at = self._clock()
        self.has_listed.set()

    def began(self) -> None:
        """Record that a watch has begun."""
        self._is_open, self._has_heard, self._began_at = True, False, self._clock()

    def heard(self) -> None:
        """Record an event or a bookmark."""
        self._has_heard, self._was_silent = True, False

    def ended(self, reason: str) -> None:
        """Record that the watch ended."""
        now = self._clock()
        if self._is_open and not self._has_heard and now - self._began_at >= SILENT_S:
            self._was_silent = True
        if self.is_up:
            self._current_at = now
        self._is_open = False
        self.restarts += 1
        self.reason = reason

    @property
    def age_s(self) -> float:
        """The age of the data in seconds. 0 while the watch is up."""
        return 0.0 if self.is_up else self._clock() - self._current_at

    def stale(self, after_s: float) -> Staleness | None:
        """Return why the data may be old. None if they are not older than *after_s*."""
        age_s = self.age_s
        return Staleness(age_s, self.reason) if age_s > after_s else None
