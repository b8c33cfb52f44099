"""Adds the history of one block to the rows of the threads."""

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from temper_plugin_tracer.trace.analysis.history import History, Op
from temper_plugin_tracer.trace.analysis.overlaps import Pieces
from temper_plugin_tracer.trace.analysis.slices import count_in_buckets
from temper_plugin_tracer.trace.analysis.threads import (
    BLOCKED,
    RUNNING,
    UNSEEN,
    WAITING,
    Integers,
    ThreadTable,
)

__all__ = [
    "EndedWaits",
    "add_to_rows",
    "count_history",
    "ended_waits",
    "pieces_in",
    "remember_states",
]


@frozen(eq=False)
class EndedWaits:
    """Waits that ended in a block because the thread took a CPU. Each array has one item a wait.

    ``starts`` and ``ends`` are indices of entries. ``began_ns`` may be before the block. ``wakers``
    are thread ids, 0 for interrupts, -1 for a wait that no wake-up began.
    """

    rows: Integers
    starts: Integers
    ends: Integers
    began_ns: Integers
    ns: Integers
    is_woken: NDArray[np.bool_]
    wakers: Integers


def ended_waits(history: History, wakers: Integers, table: ThreadTable) -> EndedWaits:
    """Return the waits that end in *history*. *wakers* has one of each entry, -1 without.

    *table* is as before the block.
    """
    takes = np.flatnonzero(history.op == Op.TAKES_CPU)
    takes = takes[history.state[takes - 1] == WAITING]  # BEFORE precedes the first entry
    starts = history.start[takes - 1]
    rows, began_ns = history.row[takes], history.ns[starts]
    is_before = history.op[starts] == Op.BEFORE
    is_woken = history.is_wake[starts] | (is_before & table.is_woken[rows])
    waker = np.where(is_before, table.waker[rows], wakers[starts])
    ns = history.ns[takes] - began_ns
    return EndedWaits(rows, starts, takes, began_ns, ns, is_woken, waker)


def pieces_in(history: History, state: int, begin: int, end: int) -> tuple[Pieces, Integers]:
    """Return the parts of the block in which threads were in *state*, and their entries' places.

    The CPU of a running thread is the one that it runs on, else the one where it is queued.
    """
    places = np.flatnonzero(history.state == state)
    own = history.anchor[places] if state == RUNNING else places
    begins = np.maximum(history.ns[places], begin)
    following = np.minimum(places + 1, len(history.row) - 1)
    ends = np.where(history.is_last[places], end, history.ns[following])
    throttled = history.is_throttled[places]
    return Pieces(history.row[places], history.cpu[own], begins, ends, throttled), places


def count_history(history: History, waits: EndedWaits, table: ThreadTable) -> None:
    """Count slices, waits, wake-ups and migrations of one block."""
    _count_slices(history, table)
    _count(table.waits, waits.rows)
    add_to_rows(table.waits_ns, waits.rows, waits.ns)
    np.maximum.at(table.longest_wait_ns, waits.rows, waits.ns)
    count_in_buckets(table.wait_counts, waits.rows, waits.ns)
    is_woken = history.op == Op.IS_WOKEN
    _count(table.wakeups, history.row[history.is_wake])
    _count(table.idle_wakeups, history.row[is_woken & ~history.is_wake])
    _count_migrations(history, table)


def remember_states(history: History, wakers: Integers, table: ThreadTable) -> None:
    """Keep each thread's state at the end of the block. *wakers* has one of each entry."""
    last = np.flatnonzero(history.is_last)
    rows, state = history.row[last], history.state[last]
    start = np.where(state == WAITING, history.start[last], history.anchor[last])
    is_before = history.op[start] == Op.BEFORE
    table.is_woken[rows] = np.where(
        state == WAITING, history.is_wake[start] | (is_before & table.is_woken[rows]), False
    )
    table.waker[rows] = np.where(is_before, table.waker[rows], wakers[start])
    table.since[rows] = history.ns[start]
    table.cpu[rows] = np.where(
        state == RUNNING, history.cpu[history.anchor[last]], history.cpu[last]
    )
    table.is_throttled[rows] = history.is_throttled[last]
    table.state[rows] = state


def _count_slices(history: History, table: ThreadTable) -> None:
    leaves = np.flatnonzero((history.op == Op.LEAVES_RUNNABLE) | (history.op == Op.LEAVES_BLOCKED))
    before, begun = history.state[leaves - 1], history.anchor[leaves - 1]
    is_whole = (before == RUNNING) & (history.cpu[begun] == history.cpu[leaves])
    rows = history.row[leaves]
    ns = (history.ns[leaves] - history.ns[begun])[is_whole]
    _count(table.slices, rows[is_whole])
    add_to_rows(table.slices_ns, rows[is_whole], ns)
    np.maximum.at(table.longest_slice_ns, rows[is_whole], ns)
    count_in_buckets(table.slice_counts, rows[is_whole], ns)
    _count(table.broken, rows[~is_whole & (before != UNSEEN)])
    _count(table.preemptions, rows[history.op[leaves] == Op.LEAVES_RUNNABLE])
    _count(table.broken, history.row[history.op == Op.IS_REPLACED])
    takes = np.flatnonzero(history.op == Op.TAKES_CPU)
    before = history.state[takes - 1]
    _count(table.broken, history.row[takes[before == RUNNING]])
    _count(table.unwoken, history.row[takes[before == BLOCKED]])


def _count_migrations(history: History, table: ThreadTable) -> None:
    """Count the runs on another CPU than the thread's run before."""
    takes = np.flatnonzero(history.op == Op.TAKES_CPU)
    rows, cpus = history.row[takes], history.cpu[takes]
    is_first = np.append(np.ones(min(len(rows), 1), np.bool_), rows[1:] != rows[:-1])
    before = np.where(is_first, table.last_cpu[rows], np.append(cpus[:1], cpus[:-1]))
    _count(table.migrations, rows[(before >= 0) & (before != cpus)])
    is_last = np.append(is_first[1:], np.ones(min(len(rows), 1), np.bool_))
    table.last_cpu[rows[is_last]] = cpus[is_last]


def _count(column: Integers, rows: NDArray[Any]) -> None:
    counts = np.bincount(rows)
    column[: len(counts)] += counts


def add_to_rows(column: Integers, rows: NDArray[Any], values: Integers) -> None:
    """Add each value to the column's item of its row."""
    # Sums of doubles are exact below 2^53 ns, which is 104 days.
    sums = np.bincount(rows, weights=values).astype(np.int64)
    column[: len(sums)] += sums
