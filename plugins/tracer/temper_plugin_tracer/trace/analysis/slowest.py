"""The slowest wake-ups of a trace, with the parties on the CPU and the wake-ups before them."""

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from temper_plugin_tracer.trace.analysis.accounts import EndedWaits
from temper_plugin_tracer.trace.analysis.history import History, Op
from temper_plugin_tracer.trace.analysis.overlaps import Pieces, held, held_in_parts
from temper_plugin_tracer.trace.analysis.pairs import CODE_BITS, PairSums
from temper_plugin_tracer.trace.analysis.threads import WAITING, Integers
from temper_plugin_tracer.trace.analysis.timeline import Timeline
from temper_plugin_tracer.trace.analysis.wakes import Wakes

__all__ = ["SlowWake", "SlowestWakes", "every_thread"]


@frozen
class SlowWake:
    """A wake-up and the wait after it.

    Attributes:
        row: Row of the thread.
        began_ns: Moment of the wake-up.
        ns: Wait.
        cpu: CPU that the thread took at last.
        parties: Code and nanoseconds of the parties on the CPU on which the thread was queued.
        links: Waker, moment and wait of the wake-up, and of those behind it.

    """

    row: int
    began_ns: int
    ns: int
    cpu: int
    parties: tuple[tuple[int, int], ...]
    links: tuple[tuple[int, int, int], ...]


def every_thread(_: int) -> bool:
    """Return True: the wake-ups of all threads are asked for."""
    return True


class SlowestWakes:
    """The *most* slowest wake-ups of the threads that are asked for, by their thread ids.

    Of equal ones, those of earlier moments and rows.
    """

    def __init__(self, most: int, is_asked: Callable[[int], bool] = every_thread) -> None:
        self._most = most
        self._is_asked = is_asked
        self._asked: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._found: list[SlowWake] = []
        self._keys: Integers = np.zeros(0, np.int64)
        self._sums: Integers = np.zeros(0, np.int64)

    def all(self) -> tuple[SlowWake, ...]:
        """Return them, slowest first."""
        return tuple(self._found)

    def add_rows(self, tids: Integers) -> None:
        """Add the rows of new threads."""
        asked = [self._is_asked(tid) for tid in tids.tolist()]
        self._asked = np.concatenate([self._asked, np.array(asked, np.bool_)])

    def add(
        self,
        history: History,
        waits: EndedWaits,
        wakes: Wakes,
        timeline: Timeline,
    ) -> None:
        """Add the wake-ups whose wait ended in a block. *wakes* has the block's chains."""
        chosen = self._candidates(waits)
        if len(chosen):
            pieces = _pieces_of(history, waits.starts[chosen], waits.ends[chosen], timeline)
            keys, sums = held(timeline, pieces)
            for number, wait in enumerate(chosen.tolist()):
                is_carried = bool(history.op[waits.starts[wait]] == Op.BEFORE)
                parties = Counter(_of_row(keys, sums, number))
                if is_carried:
                    parties.update(_of_row(self._keys, self._sums, int(waits.rows[wait])))
                self._found.append(_slow_wake(history, waits, wakes, wait, parties))
            self._found.sort(key=lambda wake: (-wake.ns, wake.began_ns, wake.row))
            del self._found[self._most :]
        self._carry(history, timeline)

    def _candidates(self, waits: EndedWaits) -> Integers:
        least = self._found[-1].ns if len(self._found) >= self._most else 0
        is_asked = waits.is_woken & self._asked[waits.rows]
        woken = np.flatnonzero(is_asked & (waits.ns >= least))
        order = np.lexsort((waits.rows[woken], waits.began_ns[woken], -waits.ns[woken]))
        return woken[order[: self._most]]

    def _carry(self, history: History, timeline: Timeline) -> None:
        """Keep the parties on the CPU so far during the waits that go on."""
        is_open = history.is_last & (history.state == WAITING)
        open_waits = np.flatnonzero(is_open & self._asked[history.row])
        starts, rows = history.start[open_waits], history.row[open_waits]
        pieces = _pieces_of(history, starts, open_waits + 1, timeline)
        pieces = evolve(pieces, rows=rows[pieces.rows])
        is_same = np.isin(self._keys >> CODE_BITS, rows[history.op[starts] == Op.BEFORE])
        carried = PairSums()
        carried.add(self._keys[is_same], self._sums[is_same])
        for keys, sums in held_in_parts(timeline, pieces):
            carried.add(keys, sums)
        self._keys, self._sums = carried.all()


def _slow_wake(
    history: History, waits: EndedWaits, wakes: Wakes, wait: int, parties: Mapping[int, int]
) -> SlowWake:
    return SlowWake(
        int(waits.rows[wait]),
        int(waits.began_ns[wait]),
        int(waits.ns[wait]),
        int(history.cpu[waits.ends[wait]]),
        tuple(sorted(parties.items(), key=lambda item: (-item[1], item[0]))),
        wakes.chain(waits, wait),
    )


def _pieces_of(history: History, starts: Integers, ends: Integers, timeline: Timeline) -> Pieces:
    """Return the parts of waits in the block. The row of a part is the number of its wait.

    A wait has the entries from its start up to the one at its end, which is not included. The
    wait goes on to the end of the block if the thread has no entry there.
    """
    counts = ends - starts
    wait = np.repeat(np.arange(len(starts)), counts)
    places = np.arange(len(wait)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    following = np.minimum(places + 1, len(history.row) - 1)
    until = np.where(history.is_last[places], timeline.end, history.ns[following])
    begins = np.maximum(history.ns[places], timeline.begin)
    return Pieces(wait, history.cpu[places], begins, until, history.is_throttled[places])


def _of_row(keys: Integers, sums: Integers, row: int) -> dict[int, int]:
    first, last = np.searchsorted(keys, (row << CODE_BITS, (row + 1) << CODE_BITS)).tolist()
    codes = keys[first:last] & ((1 << CODE_BITS) - 1)
    return dict(zip(codes.tolist(), sums[first:last].tolist(), strict=True))
