"""Change notifications for the loop: of pods, profiles and the file that requests safe mode."""

from typing import Protocol

from temper_core.agent.waker import LoopWaker, WatchedDescriptor


class Readable(Protocol):
    """Something with a descriptor that becomes readable when the thing may have changed."""

    def fileno(self) -> int:
        """Return the descriptor, -1 while there is none, so that the thing has to be polled."""
        ...


class ChangeSource:
    """Reports changes of one source, at most every *rest_s* seconds.

    The source may change its descriptor at any time. After ``taken`` has returned true the caller
    must read the source before the next sleep, since only that drains the descriptor.
    """

    def __init__(self, wake: LoopWaker, source: Readable, rest_s: float) -> None:
        self._wake = wake
        self._source = source
        self._rest_s = rest_s
        self._watched: WatchedDescriptor | None = None

    @property
    def is_listening(self) -> bool:
        """Whether changes will be reported. Otherwise the source has to be polled."""
        return self._watched is not None

    def taken(self) -> bool:
        """Return whether there were changes since the last call, and wait for the next."""
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
