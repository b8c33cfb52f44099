"""Wakers and wakees with latencies, and the chain of wake-ups before each wake-up."""

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from temper_plugin_tracer.trace.analysis.accounts import EndedWaits
from temper_plugin_tracer.trace.analysis.history import History, Op
from temper_plugin_tracer.trace.analysis.threads import DEPTH, Integers, ThreadTable

__all__ = ["INTERRUPT_WAKES", "EdgeSums", "Wakes", "entry_wakers", "wakes_in"]

INTERRUPT_WAKES = 1
"""Bit of ``flags``: an interrupt handler woke the thread."""
FROM_INTERRUPT = 0
"""The waker in an edge or chain that begins in an interrupt or on an idle CPU."""
MOST_EDGES = 1 << 20
TID_BITS = 22


@frozen(eq=False)
class Wakes:
    """Wake-ups that made a thread runnable, with the chain of each.

    A chain has waker, moment and wait of the wake-up, and of the ``DEPTH`` - 1 behind it. A wait
    is -1 if it had not ended. The chain ends with a waker of -1.

    Attributes:
        places: Entries of the block's wake-ups.
        links: Their chains.
        carried: The block's ended waits that began with a wake-up before the block.
        carried_links: Their chains.

    """

    places: Integers
    links: Integers
    carried: Integers
    carried_links: Integers

    def chain(self, waits: EndedWaits, wait: int) -> tuple[tuple[int, int, int], ...]:
        """Return the chain of a wait that began with a wake-up."""
        place = int(np.searchsorted(self.carried, wait))
        if place < len(self.carried) and self.carried[place] == wait:
            links = self.carried_links[place]
        else:
            links = self.links[np.searchsorted(self.places, waits.starts[wait])]
        return tuple((waker, ns, wait_ns) for waker, ns, wait_ns in links.tolist() if waker >= 0)


def entry_wakers(block: NDArray[Any], history: History) -> Integers:
    """Return the waker at each entry: a thread id, 0 for an interrupt, -1 for none."""
    wakers = np.full(len(history.row), -1, np.int64)
    places = np.flatnonzero(history.is_wake)
    events = history.event[places]
    is_interrupt = (block["flags"][events] & INTERRUPT_WAKES) != 0
    wakers[places] = np.where(is_interrupt, FROM_INTERRUPT, block["prev"][events])
    return wakers


def wakes_in(history: History, waits: EndedWaits, wakers: Integers, table: ThreadTable) -> Wakes:
    """Return the wake-ups of a block with their chains, and keep the last chain of each thread."""
    places = np.flatnonzero(history.is_wake)
    wait_ns = np.full(len(history.row), -1, np.int64)
    wait_ns[waits.starts] = waits.ns
    carried = _finish_carried(history, waits, table)
    carried_links = table.chain[waits.rows[carried]]
    links = np.full((len(places), DEPTH, 3), -1, np.int64)
    links[:, 0, 0], links[:, 0, 1] = wakers[places], history.ns[places]
    links[:, 0, 2] = wait_ns[places]
    _link(links, history.row[places], history.event[places], wakers[places], table)
    rows = history.row[places]
    is_last = np.append(rows[1:] != rows[:-1], np.ones(min(len(rows), 1), np.bool_))
    table.chain[rows[is_last]] = links[is_last]
    return Wakes(places, links, carried, carried_links)


def _finish_carried(history: History, waits: EndedWaits, table: ThreadTable) -> Integers:
    """Note the waits of wake-ups of earlier blocks that ended now. Return which waits they are."""
    carried = np.flatnonzero((history.op[waits.starts] == Op.BEFORE) & waits.is_woken)
    table.chain[waits.rows[carried], 0, 2] = waits.ns[carried]
    return carried


def _link(
    links: Integers, rows: Integers, events: Integers, wakers: Integers, table: ThreadTable
) -> None:
    """Put the waker's own last wake-up behind each wake-up, DEPTH deep."""
    if not len(rows):
        return
    waker_rows = table.rows(wakers)
    scale = int(events.max()) + 1
    keys = rows * scale + events
    place = np.searchsorted(keys, waker_rows * scale + events) - 1
    is_here = (place >= 0) & (rows[place] == waker_rows) & (wakers != FROM_INTERRUPT)
    is_carried = ~is_here & (wakers != FROM_INTERRUPT)
    # In the order of time, the waker's own chain is complete when it is copied. The loop runs
    # DEPTH times: each turn completes one more link of all chains.
    first = links[:, 0].copy()
    behind = np.where(is_carried[:, None, None], table.chain[waker_rows], -1)
    for _ in range(DEPTH - 1):
        behind[is_here] = links[place[is_here]]
        links[:, 1:] = behind[:, :-1]
        links[:, 0] = first


class EdgeSums:
    """Wake-ups, their waits and the longest wait, of each pair of waker and woken."""

    def __init__(self, most: int = MOST_EDGES) -> None:
        self._most = most
        self._sums: Integers = np.zeros((0, 4), np.int64)
        self.dropped = 0
        """Wake-ups of edges that were dropped to bound the memory: those with the least wait."""

    def add(self, waits: EndedWaits) -> None:
        """Add the waits that began with a wake-up."""
        woken = np.flatnonzero(waits.is_woken)
        keys = waits.wakers[woken] << TID_BITS | waits.rows[woken]
        ns = waits.ns[woken]
        new = np.stack([keys, np.ones(len(keys), np.int64), ns, ns], axis=1)
        self._sums = _merged(np.concatenate([self._sums, new]))
        if len(self._sums) > self._most:
            order = np.argsort(self._sums[:, 2], kind="stable")
            dropped, kept = np.split(order, [len(order) - self._most // 2])
            self.dropped += int(self._sums[dropped, 1].sum())
            self._sums = self._sums[np.sort(kept)]

    def all(self) -> list[tuple[int, int, int, int, int]]:
        """Return waker's tid, row of the woken, wake-ups, nanoseconds and the longest of them."""
        mask = (1 << TID_BITS) - 1
        return [
            (key >> TID_BITS, key & mask, count, ns, longest)
            for key, count, ns, longest in self._sums.tolist()
        ]


def _merged(sums: Integers) -> Integers:
    sums = sums[np.argsort(sums[:, 0], kind="stable")]
    starts = np.flatnonzero(np.append(np.ones(min(len(sums), 1), np.bool_), np.diff(sums[:, 0])))
    if not len(starts):
        return sums
    return np.stack(
        [
            sums[starts, 0],
            np.add.reduceat(sums[:, 1], starts),
            np.add.reduceat(sums[:, 2], starts),
            np.maximum.reduceat(sums[:, 3], starts),
        ],
        axis=1,
    )
