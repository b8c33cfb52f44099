"""Calls a function after a while, on a thread of its own."""

import _thread
import time
from collections.abc import Callable


class Alarm:
    """Calls *function* after *seconds*, unless it is cancelled before. Begins at once.

    ``threading.Timer`` waits until its thread has begun. It waits without end where that thread
    finds no memory, which is so at a bound of memory. There an alarm is lost instead.

    Raises RuntimeError if no thread can be started.
    """

    def __init__(self, seconds: float, function: Callable[[], None]) -> None:
        self._seconds = seconds
        self._due = time.monotonic() + seconds
        self._until_cancelled = _thread.allocate_lock()
        self._until_cancelled.acquire()
        _thread.start_new_thread(self._wait, (function,))

    def postpone(self) -> None:
        """Begin again with all of the seconds."""
        self._due = time.monotonic() + self._seconds

    def cancel(self) -> None:
        """Let the function not be called, if it was not yet. Call it once."""
        self._until_cancelled.release()

    def _wait(self, function: Callable[[], None]) -> None:
        while not self._until_cancelled.acquire(timeout=max(0.0, self._due - time.monotonic())):
            if time.monotonic() >= self._due:
                function()
                return
