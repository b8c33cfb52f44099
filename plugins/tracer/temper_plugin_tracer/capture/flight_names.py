"""The names of threads for as long as the flight recorder records, in bounded memory."""

import numpy as np
from attrs import define, field

from temper_plugin_tracer.capture.kernel_layout import EXITED, NAME

MOST_PENDING = 65_536
MOST_ENDED = 65_536
"""Threads that ended within the kept time and keep their names: the newest."""


@define(eq=False)
class LastNames:
    """The last name of each thread that lives, or has ended within *kept_ns*."""

    kept_ns: int
    _pending: list[np.ndarray] = field(factory=list)
    _new: int = 0

    def add(self, names: np.ndarray, now_ns: int) -> None:
        """Take the names that were noted since the last call."""
        if not len(names):
            return
        self._pending.append(names)
        self._new += len(names)
        if self._new >= MOST_PENDING:
            self.last(now_ns)

    def last(self, now_ns: int) -> np.ndarray:
        """Return the names as of *now_ns*, in the order of their noting."""
        every = np.concatenate(self._pending) if self._pending else np.zeros(0, NAME)
        newest_first = every[::-1]
        _, places = np.unique(newest_first["tid"], return_index=True)
        names = newest_first[np.sort(places)]
        has_ended = names["kind"] == EXITED
        is_recent = names["ns"] >= np.uint64(max(0, now_ns - self.kept_ns))
        is_kept = ~has_ended | (is_recent & (np.cumsum(has_ended) <= MOST_ENDED))
        kept: np.ndarray = names[is_kept][::-1].copy()
        self._pending, self._new = [kept], 0
        return kept
