"""Selects new events: each is sent when its cause begins, and not again while it lasts."""

from collections import deque
from collections.abc import Iterable

from temper_plugin_kubernetes.events import NodeEvent

TELL_AGAIN_S = 300.0
"""An event whose cause ends and begins again is sent once in this many seconds."""
FORGET_S = 3600.0
MOST_WAITING = 200


class PendingEvents:
    """Keeps the current causes and the unsent events, at most MOST_WAITING, newest last."""

    def __init__(self) -> None:
        self._standing: frozenset[tuple[str, str]] = frozenset()
        self._told_at: dict[tuple[str, str], float] = {}
        self._waiting: deque[NodeEvent] = deque(maxlen=MOST_WAITING)

    def goes_on(self, happening_now: Iterable[NodeEvent], now: float) -> None:
        """Record the current events at *now*. New ones wait to be sent."""
        current = {event.key: event for event in happening_now}
        for key, happening in current.items():
            long_ago = now - self._told_at.get(key, -FORGET_S) >= TELL_AGAIN_S
            if key not in self._standing and long_ago:
                self._waiting.append(happening)
                self._told_at[key] = now
        self._standing = frozenset(current)
        self._told_at = {k: at for k, at in self._told_at.items() if now - at < FORGET_S}

    @property
    def next(self) -> NodeEvent | None:
        """The next event to send. None if there is none."""
        return self._waiting[0] if self._waiting else None

    def drop_next(self) -> None:
        """Drop the next event, after it was sent or refused."""
        self._waiting.popleft()
