"""The state of each thread between two blocks of events, one row per thread."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temper_core import InputError
from temper_plugin_tracer.trace.analysis.slices import BUCKETS

__all__ = [
    "BLOCKED",
    "DEPTH",
    "RUNNING",
    "UNSEEN",
    "WAITING",
    "Integers",
    "ThreadTable",
]

Integers = NDArray[np.int64]

UNSEEN, BLOCKED, WAITING, RUNNING = range(4)
"""States of a thread. An unseen one has had no event, or its switch was lost."""
TID_LIMIT = 1 << 22
"""PID_MAX_LIMIT of a 64-bit kernel (include/linux/threads.h): every thread id is below it."""
DEPTH = 6
"""Wake-ups of a chain that are remembered for each thread."""
FIRST_ROWS = 256

_NUMBERS = (
    "since",
    "last_cpu",
    "cpu",
    "waker",
    "run_ns",
    "wait_ns",
    "slices",
    "slices_ns",
    "longest_slice_ns",
    "waits",
    "waits_ns",
    "longest_wait_ns",
    "wakeups",
    "idle_wakeups",
    "migrations",
    "preemptions",
    "unwoken",
    "broken",
    "shared_ns",
    "outside_ns",
    "prio",
)
"""Columns of integers. ``since``, ``cpu``, ``waker`` belong to the state that goes on."""


class ThreadTable:
    """Rows of threads, found by thread id. The memory grows with the threads and never shrinks."""

    since: Integers
    last_cpu: Integers
    cpu: Integers
    waker: Integers
    run_ns: Integers
    wait_ns: Integers
    slices: Integers
    slices_ns: Integers
    longest_slice_ns: Integers
    waits: Integers
    waits_ns: Integers
    longest_wait_ns: Integers
    wakeups: Integers
    idle_wakeups: Integers
    migrations: Integers
    preemptions: Integers
    unwoken: Integers
    broken: Integers
    shared_ns: Integers
    outside_ns: Integers
    prio: Integers

    def __init__(self, listener: Callable[[Integers], None]) -> None:
        """Call *told* with the thread ids of new rows, in the order of their rows."""
        self._listener = listener
        self._row_of: NDArray[np.int32] = np.full(1 << 16, -1, np.int32)
        self.count = 0
        self.tids: Integers = np.zeros(FIRST_ROWS, np.int64)
        self.state: NDArray[np.int8] = np.zeros(FIRST_ROWS, np.int8)
        self.is_woken: NDArray[np.bool_] = np.zeros(FIRST_ROWS, np.bool_)
        self.is_throttled: NDArray[np.bool_] = np.zeros(FIRST_ROWS, np.bool_)
        self.slice_counts: NDArray[np.uint32] = np.zeros((FIRST_ROWS, BUCKETS), np.uint32)
        self.wait_counts: NDArray[np.uint32] = np.zeros((FIRST_ROWS, BUCKETS), np.uint32)
        self.chain: NDArray[np.int64] = np.full((FIRST_ROWS, DEPTH, 3), -1, np.int64)
        """Waker, moment and wait of the thread's last wake-up, then of its waker's, and so on."""
        for name in _NUMBERS:
            setattr(self, name, np.zeros(FIRST_ROWS, np.int64))
        self.last_cpu[:] = -1

    def rows(self, tids: NDArray[Any]) -> NDArray[np.int32]:
        """Return the row of each thread id. Ids that are new get one.

        Raises:
            InputError: for an id that no Linux thread has.

        """
        highest = int(tids.max(initial=0))
        if highest >= TID_LIMIT:
            raise InputError(f"no thread has the id {highest}: is the trace damaged?")
        if highest >= len(self._row_of):
            size = min(TID_LIMIT, max(highest + 1, 2 * len(self._row_of)))
            grown = np.full(size, -1, np.int32)
            grown[: len(self._row_of)] = self._row_of
            self._row_of = grown
        rows: NDArray[np.int32] = self._row_of[tids]
        if (rows < 0).any():
            self._add(np.unique(tids[rows < 0]).astype(np.int64))
            rows = self._row_of[tids]
        return rows

    def row(self, tid: int) -> int:
        """Return the row of a thread, -1 if it has none."""
        return int(self._row_of[tid]) if 0 <= tid < len(self._row_of) else -1

    def _add(self, tids: Integers) -> None:
        first, self.count = self.count, self.count + len(tids)
        while self.count > len(self.tids):
            self._double()
        self.tids[first : self.count] = tids
        self._row_of[tids] = np.arange(first, self.count, dtype=np.int32)
        self._listener(tids)

    def _double(self) -> None:
        others = (
            "tids",
            "state",
            "is_woken",
            "is_throttled",
            "slice_counts",
            "wait_counts",
            "chain",
        )
        for name in (*_NUMBERS, *others):
            column = getattr(self, name)
            fill = -1 if name in {"chain", "last_cpu"} else 0
            setattr(self, name, np.concatenate([column, np.full_like(column, fill)]))
