"""The parties that held a CPU during given parts of a block, exact to the nanosecond."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from temper_plugin_tracer.trace.analysis.pairs import CODE_BITS, summed
from temper_plugin_tracer.trace.analysis.parties import PartyKind, party_code
from temper_plugin_tracer.trace.analysis.threads import Integers
from temper_plugin_tracer.trace.analysis.timeline import Timeline

__all__ = ["Pieces", "held", "held_in_parts"]

AT_ONCE = 1 << 20
"""Overlaps that are in memory at once."""
MOST_CELLS = 1 << 21
"""Cells of a dense matrix of rows and parties. More are summed by sorting."""
THROTTLED = party_code(PartyKind.THROTTLED)


@frozen(eq=False)
class Pieces:
    """Parts of a block on one CPU each.

    Attributes:
        rows: Rows of their threads.
        cpus: The CPU of each.
        begins: Beginning of each, ns.
        ends: End of each, ns.
        is_throttled: Whether the thread is throttled, so that no party keeps it from running.

    """

    rows: Integers
    cpus: Integers
    begins: Integers
    ends: Integers
    is_throttled: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, places: Integers) -> "Pieces":
        """Return the pieces at *places*."""
        return Pieces(
            self.rows[places],
            self.cpus[places],
            self.begins[places],
            self.ends[places],
            self.is_throttled[places],
        )


def held(timeline: Timeline, pieces: Pieces) -> tuple[Integers, Integers]:
    """Return the parties on the CPUs during *pieces*: keys of row and party, and nanoseconds.

    The nanoseconds of a row add up to the length of its pieces.
    """
    found = list(held_in_parts(timeline, pieces))
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(found) == 1:
        return found[0]
    return summed(np.concatenate([k for k, _ in found]), np.concatenate([v for _, v in found]))


def held_in_parts(timeline: Timeline, pieces: Pieces) -> Iterator[tuple[Integers, Integers]]:
    """Yield what ``held`` returns, in parts that have keys in common.

    All parts of a block have up to as many keys as its waiters times those that ran.
    """
    pieces = pieces.at(np.flatnonzero(pieces.ends > pieces.begins))
    first = np.searchsorted(timeline.keys, timeline.key(pieces.cpus, pieces.begins), "right") - 1
    last = np.searchsorted(timeline.keys, timeline.key(pieces.cpus, pieces.ends), "left") - 1
    for part, counts in _parts(last - first + 1):
        yield _sums(timeline, pieces.at(part), first[part], counts)


def _parts(counts: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Return places of pieces, with about AT_ONCE overlaps in each part."""
    sums = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        limit = AT_ONCE + (int(sums[begin - 1]) if begin else 0)
        end = max(begin + 1, int(np.searchsorted(sums, limit, "right")))
        yield np.arange(begin, end), counts[begin:end]
        begin = end


def _sums(
    timeline: Timeline, pieces: Pieces, first: Integers, counts: Integers
) -> tuple[Integers, Integers]:
    rows, row_places = np.unique(pieces.rows, return_inverse=True)
    starts = np.cumsum(counts) - counts
    piece = np.repeat(np.arange(len(pieces)), counts)
    segment = np.arange(len(piece)) + np.repeat(first - starts, counts)
    begins = np.maximum(pieces.begins[piece], timeline.begins[segment])
    ends = np.minimum(pieces.ends[piece], timeline.ends[segment])
    throttled = np.searchsorted(timeline.names, THROTTLED)
    parties = np.where(pieces.is_throttled[piece], throttled, timeline.places[segment])
    cells = row_places[piece] * len(timeline.names) + parties
    kept, sums = _by_cell(cells, ends - begins, len(rows) * len(timeline.names))
    row, name = np.divmod(kept, len(timeline.names))
    return rows[row] << CODE_BITS | timeline.names[name], sums


def _by_cell(cells: Integers, ns: Integers, count: int) -> tuple[Integers, Integers]:
    if count > MOST_CELLS:
        return summed(cells, ns)
    # Sums of doubles are exact below 2^53 ns, which is 104 days.
    sums = np.bincount(cells, weights=ns).astype(np.int64)
    kept = np.flatnonzero(sums)
    return kept, sums[kept]
