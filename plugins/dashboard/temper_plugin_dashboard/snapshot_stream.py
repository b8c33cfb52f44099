"""The stream of new snapshots that open pages follow."""

import json
import threading
from collections.abc import Iterator

from temper_core import ServerSentEvent, Snapshot, rfc3339

IDLE_S = 15
"""A stream has to send something every 60 s."""


class SnapshotStream:
    """Keeps time and mode of the newest snapshot, and sends them to all readers."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._newest = ""
        self._is_closed = False

    def publish(self, snapshot: Snapshot) -> None:
        """Make *snapshot* the newest one, and wake all readers."""
        status = snapshot.status
        newest = {
            "at": rfc3339(snapshot.at),
            "mode": str(status.mode),
            "generation": status.generation,
            "violations": len(snapshot.violations),
        }
        with self._changed:
            self._number += 1
            self._newest = json.dumps(newest)
            self._changed.notify_all()

    def close(self) -> None:
        """End the streams of all readers."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def stream(self) -> Iterator[bytes]:
        """Yield an event for the newest snapshot and each later one, and empty pieces meanwhile.

        A slow reader misses snapshots and gets the newest.
        """
        sent = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._number > sent, IDLE_S)  # noqa: B023 - called here
                if self._is_closed:
                    return
                number, newest = self._number, self._newest
            is_new, sent = number > sent, number
            yield ServerSentEvent(newest, "snapshot", str(number)).encode() if is_new else b""
