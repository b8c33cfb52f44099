"""The audit: every request over HTTP that acts, with who sent it, from where, and the outcome."""

import threading
import time
from collections.abc import Callable

from temper_core.events.event_log import AuditEntry, EventLog
from temper_core.events.kinds import CAPTURE, REQUEST, REQUEST_REFUSED
from temper_core.records.endpoints import Requester

DONE = "done"
"""The outcome of a request that was carried out."""
REPEATED_S = 60.0
"""How often the same read by the same requester is recorded, at most."""
MOST_REMEMBERED = 100
READING = ("GET ", "HEAD ")


class Audit:
    """Records requests. Any thread may call it."""

    def __init__(self, events: EventLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._clock = clock
        self._lock = threading.Lock()
        self._read_at: dict[tuple[str, str], float] = {}

    def note(self, request_line: str, requester: Requester, outcome: str = DONE) -> None:
        """Record that *requester* sent ``PUT /safe-mode``, and what became of it."""
        who = requester_text(requester)
        kind = REQUEST if outcome == DONE else REQUEST_REFUSED
        if outcome == DONE and request_line.startswith(READING):
            kind = CAPTURE
            if self._is_repeated((request_line, who)):
                return
        self._events.record(kind.name, request_line, asked=AuditEntry(who, outcome))

    def _is_repeated(self, read: tuple[str, str]) -> bool:
        now = self._clock()
        with self._lock:
            known = {key: at for key, at in self._read_at.items() if now - at < REPEATED_S}
            is_repeated = read in known
            if not is_repeated and len(known) < MOST_REMEMBERED:
                known[read] = now
            self._read_at = known
        return is_repeated


def requester_text(requester: Requester) -> str:
    """Name who asks and from where: ``socket uid 0``, ``token ops from 10.0.0.3``."""
    who = str(requester)
    address = requester.address
    return f"{who} from {address}" if address and who != address else who
