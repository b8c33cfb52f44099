"""The loop's sleep, which another thread, a signal or a readable descriptor ends early."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

from attrs import define, field

SHORTEST_POLL_S = 0.01
"""epoll_wait(2) takes whole milliseconds. A shorter sleep than this is not interrupted."""
READ_AT_ONCE = 4096
MOST_AT_ONCE = 16
_NEWS = select.EPOLLIN | select.EPOLLONESHOT


@define(eq=False)
class WatchedDescriptor:
    """A descriptor that ends a sleep. ``has_news`` stays set until ``taken`` is called.

    It ends at most one sleep within *rest_s* seconds, so that frequent changes do not keep the loop
    busy. A change in that time ends a sleep afterwards.
    """

    descriptor: int
    rest_s: float
    has_news: bool = False
    deaf_until: float | None = field(default=None, init=False)

    def taken(self) -> bool:
        """Return whether the descriptor was readable, and wait for the next time."""
        had_news, self.has_news = self.has_news, False
        return had_news


class LoopWaker:
    """The loop sleeps here. ``set`` may be called from any thread, and from a signal handler.

    ``set`` writes to a pipe. It takes no lock, since the interrupted code might hold it. All other
    methods belong to one thread.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.epoll()
        self._poll.register(self._reading, select.EPOLLIN)
        self._watched: dict[int, WatchedDescriptor] = {}

    def set(self) -> None:
        """End the present sleep, or the next one at once."""
        with suppress(BlockingIOError):  # a full pipe wakes it anyway
            os.write(self._writing, b"\0")

    def watch(self, descriptor: int, rest_s: float = 0.0) -> WatchedDescriptor | None:
        """End a sleep when *descriptor* becomes readable, at most every *rest_s* seconds.

        Returns None for a descriptor that epoll does not take: a closed one, one of a regular
        file, or one that is watched already.
        """
        if not self._begins_to_listen(descriptor):
            return None
        watched = self._watched[descriptor] = WatchedDescriptor(descriptor, rest_s)
        return watched

    def unwatch(self, watched: WatchedDescriptor) -> None:
        """Stop watching *watched*."""
        if self._watched.get(watched.descriptor) is watched:  # or another took over its number
            del self._watched[watched.descriptor]
            with suppress(OSError):  # its owner closed it
                self._poll.unregister(watched.descriptor)

    def hears(self, watched: WatchedDescriptor) -> bool:
        """Whether *watched* can still end a sleep. False if its descriptor was closed."""
        return watched.deaf_until is not None or self._listens(watched)

    def wait(self, timeout_s: float) -> bool:
        """Sleep for at most *timeout_s*. Return whether the sleep ended early."""
        timeout_s = self._listen_again(time.monotonic(), timeout_s)
        if timeout_s < SHORTEST_POLL_S:
            time.sleep(max(0.0, timeout_s))
            timeout_s = 0.0
        ready = self._poll.poll(timeout_s, MOST_AT_ONCE)
        for descriptor, _ in ready:
            if descriptor == self._reading:
                self._drain()
            elif descriptor in self._watched:  # a closed one may live on in a child for a while
                self._note_news(self._watched[descriptor])
        return bool(ready)

    @contextmanager
    def signals(self, handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
        """Call *handlers* on signals, in the main thread, whose sleep the signal ends.

        A signal that comes just before the sleep begins would otherwise be handled only after it.
        """
        before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        former = {number: signal.signal(number, _calling(act)) for number, act in handlers.items()}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)

    def close(self) -> None:
        """Close the pipe. ``set`` must not be called afterwards."""
        self._poll.close()
        os.close(self._reading)
        os.close(self._writing)

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while len(os.read(self._reading, READ_AT_ONCE)) == READ_AT_ONCE:
                pass

    def _note_news(self, watched: WatchedDescriptor) -> None:
        watched.has_news = True
        watched.deaf_until = time.monotonic() + watched.rest_s

    def _listen_again(self, now: float, timeout_s: float) -> float:
        """Watch descriptors again after their rest. Return the seconds to sleep at most."""
        for watched in self._watched.values():
            if watched.deaf_until is None or watched.has_news:
                continue
            if now >= watched.deaf_until:
                watched.deaf_until = None
                self._listens(watched)
            else:
                timeout_s = min(timeout_s, watched.deaf_until - now)
        return timeout_s

    def _listens(self, watched: WatchedDescriptor) -> bool:
        """Register *watched* again, or the descriptor that its owner reopened with its number."""
        try:
            self._poll.modify(watched.descriptor, _NEWS)
        except FileNotFoundError:
            return self._begins_to_listen(watched.descriptor)
        except OSError:
            return False
        return True

    def _begins_to_listen(self, descriptor: int) -> bool:
        try:
            self._poll.register(descriptor, _NEWS)
        except OSError:
            return False
        return True


def _calling(act: Callable[[], None]) -> Callable[[int, FrameType | None], None]:
    return lambda _number, _frame: act()
