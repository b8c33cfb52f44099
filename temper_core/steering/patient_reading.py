"""Reads that may block for good, made on threads that can be left behind.

Reading a process's command line takes the lock of its memory (``mmap_lock``, fs/proc/base.c), which
a process that hangs in a page fault may hold for minutes. The loop that steers must not wait there.
"""

import queue
import threading
from collections.abc import Callable

WAIT_S = 0.1
"""Longer than any read that is not blocked, shorter than anybody waits for a hint."""
MOST_STUCK = 4


class PatientReader:
    """Calls *read* with a process id on a thread of its own, and waits no longer than ``WAIT_S``.

    A thread that does not answer is left behind and replaced, until ``MOST_STUCK`` are. From then
    on nothing is read until one of them comes back.
    """

    def __init__(self, read: Callable[[int], str], wait_s: float = WAIT_S) -> None:
        self._read = read
        self._wait_s = wait_s
        self._stuck: dict[int, _Reader] = {}
        self._reader: _Reader | None = None

    def read(self, number: int) -> str | None:
        """Return what was read, or None where the read blocks."""
        self._stuck = {each: reader for each, reader in self._stuck.items() if reader.is_busy}
        if number in self._stuck or len(self._stuck) >= MOST_STUCK:
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
        """Let the thread end."""
        if self._reader is not None:
            self._reader.leave()
            self._reader = None


class _Reader:
    """One thread that reads what it is asked to, one after the other, until it is left."""

    def __init__(self, read: Callable[[int], str]) -> None:
        self._read = read
        self._asked: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="titles", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether it still reads. Only asked of one that was left."""
        return self._thread.is_alive()

    def ask(self, number: int, wait_s: float) -> str:
        """Return the answer. Raise queue.Empty where there is none in time."""
        self._asked.put(number)
        return self._answers.get(timeout=wait_s)

    def leave(self) -> None:
        """Ask for nothing more: the thread ends after what it reads now."""
        self._asked.put(None)

    def _work(self) -> None:
        while (number := self._asked.get()) is not None:
            self._answers.put(self._read(number))
