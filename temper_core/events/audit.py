"""The audit: every acting request over HTTP, with its requester, address and outcome."""

import threading
import time
from collections.abc import Callable

from temper_core.events.event_log import AuditEntry, EventLog
from temper_core.events.kinds import CAPTURE, REQUEST, REQUEST_REFUSED
from temper_core.records.endpoints import Requester

DONE = "done"
"""The outcome of a request that was carried out."""
REPEATED_S = 60.0
"""The shortest time between two records of the same read by the same requester. A series that was
silent for so long is recorded again."""
MOST_REMEMBERED = 100
READING = ("GET ", "HEAD ")


class Audit:
    """Records requests. Any thread may call it."""

    def __init__(self, events: EventLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._clock = clock
        self._lock = threading.Lock()
        self._read_at: dict[tuple[str, str], float] = {}

    def note(
        self,
        request_line: str,
        requester: Requester,
        outcome: str = DONE,
        *,
        is_series: bool = False,
    ) -> None:
        """Record a request such as ``PUT /safe-mode`` of *requester*, and its outcome.

        Of an *is_series* only the first that was carried out is recorded.
        """
        name = requester_text(requester)
        kind = REQUEST if outcome == DONE else REQUEST_REFUSED
        if outcome == DONE and request_line.startswith(READING):
            kind = CAPTURE
            if self._is_repeated((request_line, name)):
                return
        if outcome == DONE and is_series and self._is_repeated((request_line, name), lasts=True):
            return
        self._events.record(kind.name, request_line, asked=AuditEntry(name, outcome))

    def _is_repeated(self, entry: tuple[str, str], *, lasts: bool = False) -> bool:
        """Whether *entry* was recorded lately. If it *lasts*, or was seen lately."""
        now = self._clock()
        with self._lock:
            recent = {key: at for key, at in self._read_at.items() if now - at < REPEATED_S}
            is_repeated = entry in recent
            has_room = len(recent) < MOST_REMEMBERED
            if lasts if is_repeated else has_room:
                recent[entry] = now
            self._read_at = recent
        return is_repeated


def requester_text(requester: Requester) -> str:
    """Return the requester and its address: ``socket uid 0``, ``token ops from 10.0.0.3``."""
    name = str(requester)
    address = requester.address
    return f"{name} from {address}" if address and name != address else name
