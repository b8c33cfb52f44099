"""A reader of threads that falls back to a lower tier after repeated failures."""

from collections.abc import Callable

from temper_core.observe.thread_rows import ThreadReader, ThreadRows
from temper_core.observe.tiers import OpenedReader

MOST_FAILURES = 3
"""Failed looks in a row before the fallback. A single failure may be a lack of memory."""


class LastingReader:
    """Reads with the *opened* tier, and after ``MOST_FAILURES`` with the one of *fall_back*.

    ``tier`` is the tier in use, ``reason`` why it is not a better one.
    """

    def __init__(self, opened: OpenedReader, fall_back: Callable[[], ThreadReader] | None) -> None:
        self._reader = opened.reader
        self._fall_back = fall_back
        self._failures = 0
        self.reason = opened.reason

    @property
    def tier(self) -> str:
        """The tier in use."""
        return self._reader.tier

    def snapshot(self, since: int) -> ThreadRows:
        """Return the threads that ran since the last snapshot. Raises OSError on failure."""
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
        """Read the cgroup of every process again at the next snapshot."""
        self._reader.refresh_cgroups()

    def close(self) -> None:
        """Close the reader in use."""
        self._reader.close()

    def _give_way(self, fall_back: Callable[[], ThreadReader], why: str) -> None:
        self.reason = f"{self.tier}: {self._failures} looks in a row failed, the last one: {why}"
        self._reader.close()
        self._reader, self._fall_back = fall_back(), None
