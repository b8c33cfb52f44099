"""JSON whose nesting, numbers and bytes a tenant chose."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.tenant_json import MOST_DEPTH, cut_deep_values, parse_tenant_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
DEEP = 50_000


def nested(depth, begins="[", ends="]", inner=""):
    return begins * depth + inner + ends * depth


def depth_of(value):
    depth = 0
    while value:
        value = value[0] if isinstance(value, list) else value["f:a"]
        depth += 1
    return depth


@given(VALUES)
def test_usual_json_is_what_json_says(value):
    text = json.dumps(value)

    assert parse_tenant_json(text) == parse_tenant_json(text.encode()) == value


@given(VALUES, VALUES)
def test_around_a_deep_value_everything_is_as_it_was(before, after):
    text = (
        f'{{"before": {json.dumps(before)}, "deep": {nested(DEEP)}, "after": {json.dumps(after)}}}'
    )

    found = parse_tenant_json(text)

    assert (found["before"], found["after"]) == (before, after)


@pytest.mark.parametrize(("begins", "ends"), [("[", "]"), ('{"f:a":', "}")])
def test_what_is_nested_too_deep_is_null(begins, ends):
    found = parse_tenant_json(nested(DEEP, begins, ends, "null"))

    assert depth_of(found) == MOST_DEPTH


def test_brackets_and_quotes_in_texts_do_not_count():
    odd = json.dumps('}]"\\{[' * 3)

    found = parse_tenant_json(f'{{{odd}: {nested(DEEP)}, "x": {odd}}}')

    assert found["x"] == '}]"\\{[' * 3


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_text_that_is_cut_is_not_complete(cut):
    text = "[" + json.dumps('a"]}\\') + ', {"b": [1, "]"]}, "c"]'

    assert cut_deep_values(text) == (text, len(text))
    assert cut_deep_values(text[: min(cut, len(text) - 1)]) is None


def test_a_number_too_long_for_python_is_null():
    assert parse_tenant_json(f'{{"a": {"9" * 5_000}, "b": -{"1" * 5_000}, "c": 3}}') == {
        "a": None,
        "b": None,
        "c": 3,
    }


def test_bytes_that_are_not_utf_8_are_replaced():
    assert parse_tenant_json(b'{"f:\xff": "\xc3\x28"}') == {"f:\ufffd": "\ufffd("}


@pytest.mark.parametrize("text", ["", "{", "[1,]", nested(DEEP) + "x", "[" * DEEP, b"\xff"])
def test_what_is_no_json_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match=re.compile("^[^\n]+$")):
        parse_tenant_json(text)
