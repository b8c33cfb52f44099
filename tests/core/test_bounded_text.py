"""Lists of texts from outside, at a bounded length."""

from hypothesis import given
from hypothesis import strategies as st

from temper_core.bounded_text import LARGEST_LIST, LONGEST_TEXT, first_of, shortened


def test_a_short_text_stays_as_it_is():
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "abc…"


def test_the_texts_that_are_left_out_are_counted():
    assert first_of(["a", "b", "c"], 3) == ("a", "b", "c")
    assert first_of(["a", "b", "c", "d"], 3) == ("a", "b", "and 2 more")


def test_long_texts_are_shortened_and_fewer():
    told = first_of(["x" * 2 * LONGEST_TEXT] * 100, 100)

    assert told == (*["x" * LONGEST_TEXT + "…"] * 7, "and 93 more")


@given(st.lists(st.text(max_size=2 * LONGEST_TEXT), max_size=40), st.integers(1, 30))
def test_a_list_is_within_its_bounds_and_stays_as_it_is(texts, most):
    told = first_of(texts, most)

    assert len(told) <= most
    assert sum(map(len, told)) <= LARGEST_LIST
    assert first_of(told, most) == told
