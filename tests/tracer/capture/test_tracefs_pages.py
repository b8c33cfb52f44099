"""The events in pages of a trace buffer, which a writer here has made by the kernel's rules."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_plugin_tracer.capture.tracefs.formats import PageFormat
from temper_plugin_tracer.capture.tracefs.pages import find_events

PAGES = PageFormat(commit=2, data=4, words=1024)
DATA_WORDS = PAGES.words - PAGES.data
SHORTEST_LONG = 29
"""Words of an event whose length does not fit its head."""
MOST_DELTA = (1 << 27) - 1
LOST_EVENTS = 1 << 31


class Page:
    """A page as the kernel writes it: ``ring_buffer_event`` in include/linux/ring_buffer.h."""

    def __init__(self, ns):
        self.began_ns = self.ns = ns
        self.data = []
        self.places = []
        self.times = []

    def has_room(self, words):
        return len(self.data) + words <= DATA_WORDS

    def head(self, kind, delta):
        assert 0 <= delta <= MOST_DELTA
        self.data.append(kind | delta << 5)

    def advance(self, delta):
        """Write what a delta needs that is too long for an event's head, and return the rest."""
        self.ns += delta
        if delta <= MOST_DELTA:
            return delta
        self.head(30, delta & MOST_DELTA)
        self.data.append(delta >> 27)
        return 0

    def stamp(self, ns):
        """Write an absolute time."""
        self.ns = ns
        self.head(31, ns & MOST_DELTA)
        self.data.append(ns >> 27)

    def event(self, delta, content):
        rest = self.advance(delta)
        if len(content) < SHORTEST_LONG:
            self.head(len(content), rest)
        else:
            self.head(0, rest)
            self.data.append(4 * (len(content) + 1))
        self.places.append(PAGES.data + len(self.data))
        self.times.append(self.ns)
        self.data += content

    def discarded(self, delta, words):
        """Write an event that was discarded: its time counts, its content does not."""
        rest = self.advance(delta)
        if not rest:  # the kernel writes at least 1: with 0 the rest of the page is empty
            rest = self.advance(1)
        self.head(29, rest)
        self.data += [4 * (words + 1), *[0xDEAD_BEEF] * words]

    def words(self, flags=0):
        size = 4 * len(self.data) | flags
        low, high = self.began_ns & 0xFFFF_FFFF, self.began_ns >> 32
        rest = [0xFFFF_FFFF] * (DATA_WORDS - len(self.data))
        return [low, high, size, 0, *self.data, *rest]


def found(*pages, flags=0):
    words = np.array([word for page in pages for word in page.words(flags)], "<u4")
    places, times = find_events(words, PAGES)
    return places.tolist(), times.tolist()


def test_an_empty_page_has_no_events():
    assert found(Page(7)) == ([], [])
    assert found() == ([], [])


def test_times_are_counted_on_from_the_head_of_the_page():
    page = Page(1 << 40)
    page.event(0, [1])
    page.event(5, [2, 3])
    page.event(MOST_DELTA, [4])

    assert found(page) == (page.places, [1 << 40, (1 << 40) + 5, (1 << 40) + 5 + MOST_DELTA])


def test_a_long_pause_has_a_record_of_its_own():
    page = Page(100)
    page.event(1 << 35, [1])

    assert found(page) == ([PAGES.data + 3], [100 + (1 << 35)])


def test_an_absolute_time_replaces_what_was_counted():
    page = Page(100)
    page.event(10, [1])
    page.stamp(1 << 45)
    page.event(3, [2])

    assert found(page) == (page.places, [110, (1 << 45) + 3])


@pytest.mark.parametrize("length", [28, 29, 500])
def test_long_events_have_their_length_beside_the_head(length):
    page = Page(0)
    page.event(1, list(range(length)))
    page.event(1, [7])

    assert found(page) == (page.places, [1, 2])


def test_what_was_discarded_is_left_out_and_its_time_counts():
    page = Page(0)
    page.event(1, [1])
    page.discarded(6, 3)
    page.event(2, [2])

    assert found(page) == (page.places, [1, 9])


def test_the_flags_of_lost_events_are_no_part_of_the_size():
    page = Page(0)
    page.event(1, [1])

    assert found(page, flags=LOST_EVENTS) == (page.places, page.times)


def test_the_events_of_many_pages_are_in_their_order():
    pages = [Page(1000 * number) for number in range(5)]
    for number, page in enumerate(pages):
        for _ in range(number * 3):
            page.event(7, [number])
    places = [n * PAGES.words + at for n, page in enumerate(pages) for at in page.places]

    assert found(*pages) == (places, [ns for page in pages for ns in page.times])


STEP = st.one_of(
    st.tuples(
        st.just("event"),
        st.integers(0, 1 << 40),
        st.lists(st.integers(0, 0xFFFF_FFFF), min_size=1, max_size=60),
    ),
    st.tuples(st.just("discarded"), st.integers(0, 1 << 40), st.integers(0, 9)),
    st.tuples(st.just("stamp"), st.integers(0, (1 << 59) - 1)),
)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, (1 << 58) - 1), st.lists(STEP, max_size=40)), max_size=4))
def test_whatever_is_written_is_found(written):
    pages = []
    for began_ns, steps in written:
        page = Page(began_ns)
        for name, *arguments in steps:
            if page.has_room(70):
                getattr(page, name)(*arguments)
        pages.append(page)
    places = [n * PAGES.words + at for n, page in enumerate(pages) for at in page.places]

    assert found(*pages) == (places, [ns for page in pages for ns in page.times])


SMALL = PageFormat(commit=2, data=4, words=16)


HEAD = st.builds(lambda kind, delta: kind | delta << 5, st.integers(0, 31), st.integers(0, 3))
CONTENT = st.lists(HEAD | st.integers(0, 0xFFFF_FFFF), min_size=12, max_size=12)
SIZE = st.integers(0, SMALL.bytes) | st.integers(0, 0xFFFF_FFFF)


@given(st.lists(st.tuples(SIZE, CONTENT), min_size=1, max_size=3))
def test_no_content_leads_out_of_its_page(pages):
    words = np.array([word for size, content in pages for word in (0, 0, size, 0, *content)], "<u4")

    places, times = find_events(words, SMALL)

    assert len(places) == len(times)
    assert (np.diff(places) > 0).all()
    assert (places % SMALL.words > SMALL.data).all()
    ends = np.array([min(16, 4 + (size & 0x3FFF_FFFF) // 4) for size, _ in pages])
    assert (places % SMALL.words < ends[places // SMALL.words]).all()
