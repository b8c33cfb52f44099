"""Which threads get a row of their own: the busiest and longest waiting, about so many.

The kernel side counts, in the same pass, how many threads ran or waited how long; from that come
the bounds for the next look. So a look after which much has changed may tell more or fewer.
"""

from collections.abc import Sequence

from attrs import frozen

BINS = 128
"""The first four are 1 us wide each; from then on there are four for each doubling."""
_UNIT_SHIFT = 10
_BINS_PER_OCTAVE = 4
_BUSY_NS = 10_000_000


@frozen
class Bounds:
    """Who gets a row: every thread from ``sure_ns`` on, and the first ``quota`` below it."""

    least_ns: int
    sure_ns: int
    quota: int


def rows_for(detail_threads: int) -> int:
    """Return how many rows there is room for, so that a sudden rush finds some."""
    return max(2 * detail_threads, min(4 * detail_threads, 8_192))


def open_bounds(detail_threads: int) -> Bounds:
    """Return bounds for when it is not known that there are too many: all that ran, in reason."""
    return Bounds(0, _BUSY_NS, 2 * detail_threads)


def bounds_after(bins: Sequence[int], detail_threads: int) -> Bounds:
    """Return bounds that, had they held in the look with these *bins*, gave *detail_threads* rows.

    Where many threads are alike, the least of them share what the busier ones leave.
    """
    busier = 0
    for place in range(BINS - 1, -1, -1):
        if busier + bins[place] > detail_threads:
            return Bounds(lower_bound(place), lower_bound(place + 1), detail_threads - busier)
        busier += bins[place]
    return open_bounds(detail_threads)


def lower_bound(place: int) -> int:
    """Return the shortest time in ns that counts into the bin at *place*."""
    octave, quarter = divmod(place, _BINS_PER_OCTAVE)
    if octave == 0:
        return quarter << _UNIT_SHIFT
    return (_BINS_PER_OCTAVE + quarter) << (octave - 1) << _UNIT_SHIFT
