"""What the loop hears of without looking: pods, profiles, and the file that asks for safe mode."""

from typing import Protocol

from temper_core.agent.waker import LoopWaker, WatchedDescriptor


class Readable(Protocol):
    """Something with a descriptor that becomes readable when it is worth a look."""

    def fileno(self) -> int:
        """Return the descriptor; -1 while there is none, and only looking helps."""
        ...


class ChangeSource:
    """Hears of one thing, every *rest_s* seconds at most. Its descriptor may be another any time.

    Whoever is told that there were news must look before the next sleep: looking takes them from
    the descriptor.
    """

    def __init__(self, wake: LoopWaker, source: Readable, rest_s: float) -> None:
        self._wake = wake
        self._source = source
        self._rest_s = rest_s
        self._watched: WatchedDescriptor | None = None

    @property
    def is_listening(self) -> bool:
        """Whether news will be heard. Where not, only looking helps."""
        return self._watched is not None

    def taken(self) -> bool:
        """Return whether there were news since the last call, and listen for the next."""
        had_news = self._watched is not None and self._watched.taken()
        descriptor = self._source.fileno()
        if self._watched is not None and not self._is_of(self._watched, descriptor):
            self._wake.unwatch(self._watched)
            self._watched = None
        if self._watched is None and descriptor >= 0:
            self._watched = self._wake.watch(descriptor, self._rest_s)
        return had_news

    def _is_of(self, watched: WatchedDescriptor, descriptor: int) -> bool:
        return watched.descriptor == descriptor and self._wake.hears(watched)
