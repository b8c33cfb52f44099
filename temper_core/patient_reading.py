"""Reads that may block for good, on threads that can be abandoned.

A read of a process's command line takes the lock of its memory (``mmap_lock``, fs/proc/base.c). A
process that hangs in a page fault may hold it for minutes, and a process of any user may hang so
on purpose, by a file system of its own.
"""

import queue
import threading
from collections.abc import Callable

WAIT_S = 0.1
"""Longer than any read that is not blocked, shorter than the acceptable delay of a hint."""
MOST_STUCK = 4


class PatientReader:
    """Calls *read* with a process id on a separate thread, and waits no longer than *wait_s*.

    A thread that does not answer is abandoned and replaced. With *most_stuck* abandoned threads
    no read starts until one of them finishes.
    """

    def __init__(
        self, read: Callable[[int], str], wait_s: float = WAIT_S, most_stuck: int = MOST_STUCK
    ) -> None:
        self._read = read
        self._wait_s = wait_s
        self._most_stuck = most_stuck
        self._stuck: dict[int, _Reader] = {}
        self._reader: _Reader | None = None

    def read(self, number: int) -> str | None:
        """Return the result of the read, None if it blocks."""
        self._stuck = {stuck: reader for stuck, reader in self._stuck.items() if reader.is_busy}
        if number in self._stuck or len(self._stuck) >= self._most_stuck:
            return None
        if self._reader is None:
            self._reader = _Reader(self._read)
        try:
            return self._reader.ask(number, self._wait_s)
        except queue.Empty:
            self._stuck[number] = self._reader
            self._reader.leave()
            self._reader = None
            return None

    def close(self) -> None:
        """End the thread."""
        if self._reader is not None:
            self._reader.leave()
            self._reader = None


class _Reader:
    """One thread that serves read requests one by one until ``leave``."""

    def __init__(self, read: Callable[[int], str]) -> None:
        self._read = read
        self._asked: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="process-reader", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether it still reads. Meaningful only after ``leave``."""
        return self._thread.is_alive()

    def ask(self, number: int, wait_s: float) -> str:
        """Return the answer. Raise queue.Empty if there is none within *wait_s*."""
        self._asked.put(number)
        return self._answers.get(timeout=wait_s)

    def leave(self) -> None:
        """End the thread after its current read."""
        self._asked.put(None)

    def _work(self) -> None:
        while (number := self._asked.get()) is not None:
            self._answers.put(self._read(number))
