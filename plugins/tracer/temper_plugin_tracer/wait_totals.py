"""The sums of all windows: their number and the waits in them."""

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping

from attrs import evolve, frozen

from temper_core import Histogram, WaitHistogram, WakeWindow

MOST_SUBJECTS = 512
"""Pods and layers whose waits are kept. The least recently updated is dropped first."""
US_PER_S = 1_000_000
WAIT_BOUNDS_US = tuple(4**n for n in range(2, 12))
WAIT_BOUNDS = tuple(bound / US_PER_S for bound in WAIT_BOUNDS_US)
"""Seconds, 16 µs to 4.2 s. Every bound is also one of the windows' histograms."""
NODE = "node"


@frozen
class WindowSums:
    """The sums of all windows. ``waits`` is the histogram of the whole node."""

    windows: int = 0
    watched_s: float = 0.0
    lost: int = 0
    waits: Histogram | None = None


class WaitTotals:
    """Accumulates windows. Safe to read from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums = WindowSums()
        self._by_subject: OrderedDict[str, Histogram] = OrderedDict()

    @property
    def sums(self) -> WindowSums:
        """The sums of all windows so far."""
        return self._sums

    def by_subject(self) -> Mapping[str, Histogram]:
        """Return the waits of each pod and layer (``layer NAME``)."""
        with self._lock:
            return dict(self._by_subject)

    def add(self, window: WakeWindow) -> None:
        """Add a window."""
        by_subject = {waits.subject: waits for waits in window.waits}
        sums = self._sums
        node = by_subject.pop(NODE, None)
        with self._lock:
            self._sums = evolve(
                sums,
                windows=sums.windows + 1,
                watched_s=sums.watched_s + window.length_s,
                lost=sums.lost + window.lost,
                waits=sums.waits if node is None else _with_waits(sums.waits, node),
            )
            for subject, waits in by_subject.items():
                self._by_subject[subject] = _with_waits(self._by_subject.get(subject), waits)
                self._by_subject.move_to_end(subject)
            while len(self._by_subject) > MOST_SUBJECTS:
                self._by_subject.popitem(last=False)


def _with_waits(old: Histogram | None, waits: WaitHistogram) -> Histogram:
    """Add a window's waits, in buckets of powers of two, to the fewer exported buckets."""
    old = old or Histogram(WAIT_BOUNDS)
    counts = [*old.counts]
    for exponent, count in enumerate(waits.counts[:-1]):
        counts[bisect_left(WAIT_BOUNDS_US, 2**exponent)] += count
    counts[-1] += sum(waits.counts[-1:])  # longer than the last bound
    return Histogram(WAIT_BOUNDS, tuple(counts), old.total + waits.total_s)
