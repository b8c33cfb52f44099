"""Events of requests for safe mode: made and released."""

import threading
from collections.abc import Callable, Mapping

from temper_core.events.event_log import EventLog
from temper_core.events.kinds import SAFE_MODE_RELEASED, SAFE_MODE_REQUESTED
from temper_core.safe_mode.model import Request

Active = Callable[[], Mapping[str, Request]]


class SafeModeWatch:
    """Compares the active requests with those before. Any thread may call ``look``."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._lock = threading.Lock()
        self._active: Active | None = None
        self._known: Mapping[str, Request] = {}

    def begin(self, active: Active) -> None:
        """Watch *active*. Requests that are active already were recorded before."""
        with self._lock:
            self._active, self._known = active, active()

    def look(self) -> None:
        """Record the changes since the last call. Does nothing before ``begin``."""
        with self._lock:
            if self._active is None or (now := self._active()) is self._known:
                return
            before, self._known = self._known, now
            for name, request in now.items():
                if name not in before or before[name].reason != request.reason:
                    self._events.record(SAFE_MODE_REQUESTED.name, name, request.reason)
            for name in before.keys() - now.keys():
                self._events.record(SAFE_MODE_RELEASED.name, name, before[name].reason)
