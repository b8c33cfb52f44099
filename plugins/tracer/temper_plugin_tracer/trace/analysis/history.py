"""The states of threads during one block of events, found for all threads at once.

Each thread's events become entries in the order of time, behind one entry for the state that it
had before the block. A switch sets a state whatever it was before. A waking sets one only for a
blocked or unseen thread. So the state after each entry follows from the last switch and from the
wakings after it, which running maxima find without a loop.
"""

from enum import IntEnum
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from temper_plugin_tracer.trace.analysis.threads import (
    BLOCKED,
    RUNNING,
    UNSEEN,
    WAITING,
    Integers,
    ThreadTable,
)
from temper_plugin_tracer.trace.events import PREEMPTED, Kind

__all__ = ["History", "Op", "history_of"]


class Op(IntEnum):
    """The effect of an entry on its thread."""

    BEFORE = 0
    """The state before the block."""
    TAKES_CPU = 1
    LEAVES_RUNNABLE = 2
    LEAVES_BLOCKED = 3
    IS_REPLACED = 4
    """Another thread left the CPU that this one had taken: events were lost."""
    COMES = 5
    """It is moved from a CPU that was not recorded to one that was."""
    GOES = 6
    """It is moved to a CPU that was not recorded."""
    IS_WOKEN = 7
    MOVES = 8


_STATE_AFTER = np.array([0, RUNNING, WAITING, BLOCKED, UNSEEN, WAITING, UNSEEN, 0, 0], np.int8)


@frozen(eq=False)
class History:
    """Entries of all threads, by thread and then time. All arrays have one item an entry.

    Attributes:
        row: Row of the thread.
        op: An ``Op``.
        ns: Moment. For ``BEFORE`` it is when the state began.
        cpu: CPU of the switch, or where the thread is queued.
        event: Index of the event in the block, -1 for ``BEFORE``.
        state: State of the thread after the entry.
        is_last: Whether the thread has no later entry.
        anchor: Index of the last entry that set the state by itself, this one included.
        is_wake: Whether the entry is a waking that made the thread runnable.
        start: Index of the entry at which the current wait began. Valid for waiting threads.
        is_throttled: Whether the thread waits, and was throttled when it left its CPU.

    """

    row: Integers
    op: NDArray[np.int8]
    ns: Integers
    cpu: Integers
    event: Integers
    state: NDArray[np.int8]
    is_last: NDArray[np.bool_]
    anchor: Integers
    is_wake: NDArray[np.bool_]
    start: Integers
    is_throttled: NDArray[np.bool_]


def history_of(
    block: NDArray[Any],
    table: ThreadTable,
    on_cpu: Integers,
    recorded: frozenset[int] | None = None,
) -> History:
    """Return the entries of *block*.

    *table* has the threads' states before the block, *on_cpu* the thread of each CPU, -1 before
    the CPU's first switch. *recorded* are the only CPUs whose events the trace has, None for all.
    """
    row, op, ns, cpu, event, order = _entries(block, table, on_cpu, recorded)
    by_time = np.argsort(row * (2 * len(block) + 4) + order)
    row, op, ns = row[by_time], op[by_time], ns[by_time]
    cpu, event = cpu[by_time], event[by_time]
    count = len(row)
    places = np.arange(count)
    is_anchor = op <= Op.GOES
    anchor = np.maximum.accumulate(np.where(is_anchor, places, 0))
    after = np.where(op == Op.BEFORE, table.state[row], _STATE_AFTER[op])[anchor]
    wakings = np.cumsum(op == Op.IS_WOKEN)
    wakings -= wakings[anchor]
    is_asleep = after <= BLOCKED
    is_wake = (op == Op.IS_WOKEN) & is_asleep & (wakings == 1)
    state = np.where(is_asleep & (wakings > 0), WAITING, after).astype(np.int8)
    is_start = is_wake | (is_anchor & (state == WAITING))
    start = np.maximum.accumulate(np.where(is_start, places, 0))
    is_last = np.append(row[1:] != row[:-1], np.ones(min(count, 1), np.bool_))
    flags = block["flags"].astype(np.bool_)[event] & (op == Op.LEAVES_RUNNABLE)
    throttled = np.where(op == Op.BEFORE, table.is_throttled[row], flags)[anchor]
    throttled &= state == WAITING
    return History(row, op, ns, cpu, event, state, is_last, anchor, is_wake, start, throttled)


def _entries(
    block: NDArray[Any], table: ThreadTable, on_cpu: Integers, recorded: frozenset[int] | None
) -> tuple[Integers, NDArray[np.int8], Integers, Integers, Integers, Integers]:
    kind = block["kind"]
    switches = np.flatnonzero(kind == Kind.SWITCH)
    takes = switches[block["next"][switches] != 0]
    leaves = switches[block["prev"][switches] != 0]
    woken = np.flatnonzero((kind == Kind.WAKING) & (block["next"] != 0))
    moves = np.flatnonzero((kind == Kind.MIGRATION) & (block["next"] != 0))
    replaced, replaced_tids = _replaced(block, switches, on_cpu)
    event = np.concatenate([takes, leaves, replaced, woken, moves])
    following = [block["next"][part] for part in (woken, moves)]
    tids = [block["next"][takes], block["prev"][leaves], replaced_tids, *following]
    rows = table.rows(np.concatenate(tids).astype(np.int64)).astype(np.int64)
    state = block["state"][leaves]
    # A thread that yields, or was woken before it slept, leaves with state 0.
    is_runnable = (state == 0) | (state == PREEMPTED)
    op = np.concatenate(
        [
            np.full(len(takes), Op.TAKES_CPU),
            np.where(is_runnable, Op.LEAVES_RUNNABLE, Op.LEAVES_BLOCKED),
            np.full(len(replaced), Op.IS_REPLACED),
            np.full(len(woken), Op.IS_WOKEN),
            _moves(block[moves], recorded),
        ]
    )
    # In one switch, the thread before leaves first.
    order = 2 * event + 2 + (op == Op.TAKES_CPU)
    is_queued = op >= Op.COMES
    cpu = np.where(is_queued, block["target"][event], block["cpu"][event]).astype(np.int64)
    before = _carried(table, rows)
    return (
        np.concatenate([before, rows]),
        np.concatenate([np.full(len(before), Op.BEFORE), op]).astype(np.int8),
        np.concatenate([table.since[before], block["ns"][event].astype(np.int64)]),
        np.concatenate([table.cpu[before], cpu]),
        np.concatenate([np.full(len(before), -1), event]),
        np.concatenate([np.zeros(len(before), np.int64), order]),
    )


def _moves(migrations: NDArray[Any], recorded: frozenset[int] | None) -> NDArray[np.int8]:
    """Return what each migration does. A thread that is moved is runnable."""
    moves = np.full(len(migrations), Op.MOVES, np.int8)
    if recorded is not None:
        cpus = sorted(recorded)
        moves[~np.isin(migrations["prev"], cpus)] = Op.COMES
        moves[~np.isin(migrations["target"], cpus)] = Op.GOES
    return moves


def _carried(table: ThreadTable, rows: Integers) -> Integers:
    """Return the rows that have an event, wait or run."""
    is_here = table.state[: table.count] >= WAITING
    is_here[rows] = True
    return np.flatnonzero(is_here)


def _replaced(
    block: NDArray[Any], switches: Integers, on_cpu: Integers
) -> tuple[Integers, Integers]:
    """Return switches whose thread before is not the one that had taken the CPU, and that one."""
    order = np.argsort(block["cpu"][switches], kind="stable")
    sorted_switches = switches[order]
    cpus = block["cpu"][sorted_switches]
    is_first = np.append(np.ones(min(len(cpus), 1), np.bool_), cpus[1:] != cpus[:-1])
    following = block["next"][sorted_switches].astype(np.int64)
    had = np.where(is_first, on_cpu[cpus], np.append(following[:1], following[:-1]))
    found = np.flatnonzero((had > 0) & (had != block["prev"][sorted_switches]))
    return sorted_switches[found], had[found]
