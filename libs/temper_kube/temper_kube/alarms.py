"""Calls a function after a while, on a thread of its own."""

import _thread
from collections.abc import Callable


class Alarm:
    """Calls *function* after *seconds*, unless it is cancelled before. Begins at once.

    ``threading.Timer`` waits until its thread has begun. It waits without end where that thread
    finds no memory, which is so at a bound of memory. There an alarm is lost instead.

    Raises RuntimeError if no thread can be started.
    """

    def __init__(self, seconds: float, function: Callable[[], None]) -> None:
        self._until_cancelled = _thread.allocate_lock()
        self._until_cancelled.acquire()
        _thread.start_new_thread(self._wait, (seconds, function))

    def cancel(self) -> None:
        """Let the function not be called, if it was not yet. Call it once."""
        self._until_cancelled.release()

    def _wait(self, seconds: float, function: Callable[[], None]) -> None:
        if not self._until_cancelled.acquire(timeout=seconds):
            function()
