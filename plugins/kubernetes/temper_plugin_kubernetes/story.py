"""Which happenings are news: each is told when it begins, and not again while it goes on."""

from collections import deque
from collections.abc import Iterable

from temper_plugin_kubernetes.events import NodeEvent

TELL_AGAIN_S = 300.0
"""What ends and begins again is told once in so many seconds."""
FORGET_S = 3600.0
MOST_WAITING = 200


class PendingEvents:
    """Remembers what stands and what waits to be told. The oldest goes where too much waits."""

    def __init__(self) -> None:
        self._standing: frozenset[tuple[str, str]] = frozenset()
        self._told_at: dict[tuple[str, str], float] = {}
        self._waiting: deque[NodeEvent] = deque(maxlen=MOST_WAITING)

    def goes_on(self, happening_now: Iterable[NodeEvent], now: float) -> None:
        """Know what stands at *now*. What is new waits to be told."""
        current = {each.key: each for each in happening_now}
        for key, happening in current.items():
            long_ago = now - self._told_at.get(key, -FORGET_S) >= TELL_AGAIN_S
            if key not in self._standing and long_ago:
                self._waiting.append(happening)
                self._told_at[key] = now
        self._standing = frozenset(current)
        self._told_at = {k: at for k, at in self._told_at.items() if now - at < FORGET_S}

    @property
    def next(self) -> NodeEvent | None:
        """What to tell next; None where all is told."""
        return self._waiting[0] if self._waiting else None

    def told(self) -> None:
        """Know that the next one was told, or cannot be."""
        self._waiting.popleft()
