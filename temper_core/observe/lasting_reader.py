"""A reader of threads that gives way to a humbler one when the kernel refuses it for good."""

from collections.abc import Callable

from temper_core.observe.thread_rows import ThreadReader, ThreadRows
from temper_core.observe.tiers import OpenedReader

MOST_FAILURES = 3
"""Looks in a row that may fail before the tier is given up. Want of memory fails one, too."""


class LastingReader:
    """Reads by the tier that was *opened*. After too many failures by what *fall_back* opens.

    ``tier`` and ``reason`` tell which one reads now, and why it is not a better one.
    """

    def __init__(self, opened: OpenedReader, fall_back: Callable[[], ThreadReader] | None) -> None:
        self._reader = opened.reader
        self._fall_back = fall_back
        self._failures = 0
        self.reason = opened.reason

    @property
    def tier(self) -> str:
        """The tier that reads now."""
        return self._reader.tier

    def snapshot(self, since: int) -> ThreadRows:
        """Return who ran since the last snapshot. Raises OSError as the reader does."""
        try:
            rows = self._reader.snapshot(since)
        except OSError as error:
            self._failures += 1
            if self._fall_back is not None and self._failures >= MOST_FAILURES:
                self._give_way(self._fall_back, str(error.strerror or error))
            raise
        self._failures = 0
        return rows

    def refresh_cgroups(self) -> None:
        """Learn at the next snapshot anew where every process lives."""
        self._reader.refresh_cgroups()

    def close(self) -> None:
        """Let go of everything that is held."""
        self._reader.close()

    def _give_way(self, fall_back: Callable[[], ThreadReader], why: str) -> None:
        self.reason = f"{self.tier}: {self._failures} looks in a row failed, the last one: {why}"
        self._reader.close()
        self._reader, self._fall_back = fall_back(), None
