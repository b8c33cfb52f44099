"""Finds the events in pages of a trace buffer (Documentation/trace/ring-buffer-map.rst).

All pages are walked at once: each step takes the next event of every page. So the cost of a step
is shared by the pages.
"""

import numpy as np
from attrs import define, field

from temper_plugin_tracer.capture.tracefs.formats import WORD, PageFormat

PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
MOST_SHORT = 28
"""Words of a short event, at most. A longer one has its length in the word after its head."""
DELTA_BITS = 27
SIZE_MASK = np.uint32(0x3FFF_FFFF)
"""The flags above tell of lost events, which the statistics count."""


@define(eq=False)
class _Walk:
    """The place of the next event in each page, and the time of the one before."""

    words: np.ndarray
    at: np.ndarray
    ends: np.ndarray
    ns: np.ndarray
    places: list[np.ndarray] = field(factory=list)
    times: list[np.ndarray] = field(factory=list)

    def step(self) -> bool:
        """Take an event of each page. Return whether a page has more."""
        head = self.words[self.at]
        kind, delta = head & np.uint32(31), (head >> np.uint32(5)).astype(np.uint64)
        second = self.words[np.minimum(self.at + 1, len(self.words) - 1)]
        is_stamp = kind == TIME_STAMP
        far = second.astype(np.uint64) << np.uint64(DELTA_BITS)
        base = np.where(is_stamp, np.uint64(0), self.ns)
        self.ns = base + delta + np.where(kind >= TIME_EXTEND, far, np.uint64(0))
        is_long, is_short = kind == 0, (kind > 0) & (kind <= MOST_SHORT)
        length = np.where(is_short, kind, 1).astype(np.int64)
        has_length = is_long | (kind == PADDING)
        length[has_length] = -(-second[has_length].astype(np.int64) // WORD)
        places, after = self.at + np.where(is_long, 2, 1), self.at + 1 + length
        # The kernel writes whole events with content. Anything else in a damaged page is no event.
        is_event = (is_long | is_short) & (places < after) & (after <= self.ends)
        self.places.append(places[is_event])
        self.times.append(self.ns[is_event])
        self.at = after
        goes_on = (self.at < self.ends) & ~((kind == PADDING) & (delta == 0))
        if not goes_on.all():
            self.at, self.ends, self.ns = self.at[goes_on], self.ends[goes_on], self.ns[goes_on]
        return bool(len(self.at))


def find_events(words: np.ndarray, pages: PageFormat) -> tuple[np.ndarray, np.ndarray]:
    """Return the places and the times of all events in the *words* of whole pages, in order."""
    starts = np.arange(len(words) // pages.words, dtype=np.int64) * pages.words
    sizes = (words[starts + pages.commit] & SIZE_MASK).astype(np.int64)
    ends = starts + np.minimum(pages.data + sizes // WORD, pages.words)
    low, high = words[starts].astype(np.uint64), words[starts + 1].astype(np.uint64)
    at, is_used = starts + pages.data, sizes > 0
    walk = _Walk(words, at[is_used], ends[is_used], (low | high << np.uint64(32))[is_used])
    if not len(walk.at):
        return np.zeros(0, np.int64), np.zeros(0, np.uint64)
    while walk.step():
        pass
    places, times = np.concatenate(walk.places), np.concatenate(walk.times)
    order = np.argsort(places)
    return places[order], times[order]
