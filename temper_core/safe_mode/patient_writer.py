"""Writes on a thread of its own, so that a disk that hangs holds nobody for long."""

import _thread
import threading
from collections.abc import Callable

WAIT_S = 2.0
"""Seconds. A write takes milliseconds, and ``temper safe-mode`` waits longer for an answer."""


class PatientWriter:
    """Calls a function that writes on one thread. Any thread may call every method.

    What is asked for during a call is done together by the next one. The function is given with
    each request, and is the same: kept here it would be a cycle of references with its owner.
    """

    def __init__(self) -> None:
        self._turn, self._writing = threading.Condition(), threading.Lock()
        self._wanted = self._written = 0
        self._is_running = False
        self._is_late = False

    @property
    def is_late(self) -> bool:
        """Whether a call of ``wait`` has ended before its write."""
        return self._is_late

    @property
    def is_busy(self) -> bool:
        """Whether a write is under way."""
        return self._is_running

    def begin(self, write: Callable[[], None]) -> int:
        """Have all up to now written, without waiting. Return the number of this write.

        Raises RuntimeError if no thread can be started.
        """
        with self._turn:
            self._wanted += 1
            if not self._is_running:
                # threading.Thread.start would wait without end where its thread finds no memory.
                _thread.start_new_thread(self._run, (write,))
                self._is_running = True
            return self._wanted

    def write(self, write: Callable[[], None]) -> bool:
        """Have all up to now written. Return whether that is done, after ``WAIT_S`` at most.

        While an earlier write is late, nobody waits. Without a thread the caller writes.
        """
        try:
            number = self.begin(write)
        except RuntimeError:
            self._write_alone(write)
            return True
        with self._turn:
            wait_s = 0.0 if self._is_late else WAIT_S
            is_written = self._turn.wait_for(lambda: self._written >= number, wait_s)
            self._is_late = not is_written
        return is_written

    def _run(self, write: Callable[[], None]) -> None:
        is_open = True
        while is_open:
            number, is_written = self._newest(), False
            try:
                self._write_alone(write)
                is_written = True
            finally:
                is_open = self._end(number, is_written=is_written)

    def _newest(self) -> int:
        with self._turn:
            return self._wanted

    def _end(self, number: int, *, is_written: bool) -> bool:
        """Note the end of a write. Return whether another one is wanted."""
        with self._turn:
            if is_written:
                self._written, self._is_late = number, False
            self._is_running = is_written and number < self._wanted
            self._turn.notify_all()
            return self._is_running

    def _write_alone(self, write: Callable[[], None]) -> None:
        with self._writing:
            write()
