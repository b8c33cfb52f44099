"""The annotation that keeps what was there before."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import InputError
from temper_plugin_rightsizer.applying.record import KEY, as_annotation, merged, recorded
from temper_plugin_rightsizer.changes import PLACES, ContainerChange

amounts = st.one_of(st.none(), st.integers(1, 10**9).map(str))


@st.composite
def changes(draw, names=("app", "side", "proxy")):
    found = []
    for name in draw(st.lists(st.sampled_from(names), unique=True)):
        places = draw(st.lists(st.sampled_from(sorted(PLACES)), min_size=1, unique=True))
        before, after = ({place: draw(amounts) for place in places} for _ in range(2))
        found.append(ContainerChange(name, name == "proxy", before, after))
    return tuple(found)


def annotated(content):
    return {"metadata": {"annotations": {KEY: content}}}


@given(changes())
def test_a_record_is_read_as_it_was_written(written):
    assert recorded(annotated(as_annotation(written))) == written


@given(changes(), changes())
def test_a_record_has_the_first_amounts_and_the_last(first, second):
    record = {each.container: each for each in merged(first, second)}

    for change in second:
        known = record[change.container]
        assert known.after.items() >= change.after.items()
    for change in first:
        known = record[change.container]
        assert known.before.items() >= change.before.items()
        assert known.before.keys() == known.after.keys()


@given(
    st.one_of(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr))
)
def test_any_annotation_is_a_record_or_an_input_error(content):
    with suppress(InputError):
        assert all(change.before.keys() <= PLACES for change in recorded(annotated(content)))


def test_deep_nesting_is_an_input_error():
    with pytest.raises(InputError, match="not JSON"):
        recorded(annotated("[" * 100_000))
