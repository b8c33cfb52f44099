"""A stream of server-sent events: the run delay of each snapshot as it comes."""

import json
from collections.abc import Iterator, Mapping
from threading import Condition

from temper_core import ServerSentEvent

QUIET_S = 15.0
"""The agent ends a stream that yields nothing for 60 s."""


class Live:
    """Passes each snapshot's delays on to every stream."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._number = 0
        self._delays: Mapping[str, float] = {}
        self._is_closed = False

    def publish(self, delays: Mapping[str, float]) -> None:
        """Wake the streams."""
        with self._changed:
            self._number, self._delays = self._number + 1, delays
            self._changed.notify_all()

    def close(self) -> None:
        """End the streams."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def events(self) -> Iterator[bytes]:
        """Yield an event for each snapshot, and an empty piece after a while without one."""
        seen = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._number != seen, QUIET_S)  # noqa: B023 - called at once
                if self._is_closed:
                    return
                is_new, seen, delays = self._number != seen, self._number, self._delays
            event = ServerSentEvent(json.dumps(delays), event="delays", id=str(seen))
            yield event.encode() if is_new else b""
