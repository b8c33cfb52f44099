"""A working set that grows without end: a memory leak."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from attrs import frozen

HOUR_S = 3600
LEAST_S = 5 * HOUR_S
"""A shorter run may only warm up."""
RECENT_S = 48 * HOUR_S
"""A leak may have begun in this time. In less, the load of a day looks like growth."""
QUARTERS = 4
LEAST_RISE = 0.02
"""Of the first level, in each quarter. Less is noise."""
LEAST_LAST_RISE = 0.5
"""Of the mean rise. A cache that fills grows ever less."""


@frozen
class Floor:
    """The least working set in an interval. A container began anew in it if *begins_anew*."""

    least_bytes: int
    begins_anew: bool = False


@frozen
class Growth:
    """A growth of *bytes_per_hour* that was watched for *seconds*, up to *last_bytes*."""

    bytes_per_hour: float
    seconds: int
    first_bytes: int
    last_bytes: int


def growth(floors: Mapping[int, Floor]) -> Growth | None:
    """Return the growth of one container since its last start, by the begin of each interval.

    The least working set of each quarter of the time must exceed that of the quarter before, and
    the last rise must not be much smaller than the others. The whole run is judged, then its last
    ``RECENT_S`` seconds.
    """
    run = _last_run(floors)
    if not run:
        return None
    end = run[-1][0]
    recent = [point for point in run if point[0] >= end - RECENT_S]
    return _steady_growth(run) or _steady_growth(recent)


def _last_run(floors: Mapping[int, Floor]) -> Sequence[tuple[int, int]]:
    """Return time and bytes of the intervals after the last start."""
    run: list[tuple[int, int]] = []
    for at, floor in sorted(floors.items()):
        if floor.begins_anew:
            run = []
        elif floor.least_bytes:
            run.append((at, floor.least_bytes))
    return run


def _steady_growth(run: Sequence[tuple[int, int]]) -> Growth | None:
    (begin, first), (end, last) = run[0], run[-1]
    if end - begin < LEAST_S:
        return None
    quarters: list[list[int]] = [[] for _ in range(QUARTERS)]
    for at, size in run:
        quarters[min((at - begin) * QUARTERS // (end - begin), QUARTERS - 1)].append(size)
    if not all(quarters):
        return None
    levels = [min(sizes) for sizes in quarters]
    rises = [after - before for before, after in pairwise(levels)]
    mean = sum(rises) / len(rises)
    if min(rises) < LEAST_RISE * levels[0] or rises[-1] < LEAST_LAST_RISE * mean:
        return None
    return Growth(mean * QUARTERS * HOUR_S / (end - begin), end - begin, first, last)
