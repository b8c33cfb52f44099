"""Documents whose list is read item by item, in pieces of any size."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.json_items import CHUNK_BYTES, JsonItems
from tests.podlists import make_podlist

MOST = 1 << 20
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def in_pieces(text, size):
    """Return a read that gives no more than *size* bytes at a time, as a socket may."""
    stream = io.BytesIO(text.encode() if isinstance(text, str) else text)
    return lambda most: stream.read(min(most, size))


def read(text, size=7, most=MOST):
    found = JsonItems(in_pieces(text, size), most)
    return list(found), found.rest


@given(
    before=st.dictionaries(st.text(max_size=4), values, max_size=2),
    items=st.lists(values, max_size=4),
    after=st.dictionaries(st.text(max_size=4), values, max_size=2),
    size=st.integers(1, 9),
    indent=st.sampled_from([None, 2]),
    is_ascii=st.booleans(),
)
def test_a_document_in_pieces_says_what_it_says_whole(before, items, after, size, indent, is_ascii):
    document = {**before, "items": items, **after} | {"items": items}
    text = json.dumps(document, indent=indent, ensure_ascii=is_ascii)

    found, rest = read(text, size)

    assert found == items
    assert rest == {key: value for key, value in document.items() if key != "items"}


def test_a_pod_list_is_read_with_no_more_held_than_some_pods():
    text = json.dumps(make_podlist(300)).encode()
    stream = io.BytesIO(text)
    items = JsonItems(stream.read, len(text))

    ahead = [stream.tell() - place for place, _ in zip(_ends(text), items, strict=True)]

    assert len(ahead) == 300
    assert max(ahead) < 2 * CHUNK_BYTES < len(text) / 10


def _ends(text):
    """Yield where each item of the compact text ends."""
    decode, at = json.JSONDecoder().raw_decode, text.index(b'"items": [') + len('"items": [')
    for _ in range(300):
        _, at = decode(text.decode(), at)
        yield at
        at += len(", ")


@pytest.mark.parametrize("text", ['{"kind": "Status"}', '{"items": null}', '{"items": {}}', "{}"])
def test_a_document_without_a_list_has_no_items(text):
    assert read(text) == ([], json.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        "null",
        "{",
        '{"items": [1, 2',
        '{"items": [1 2]}',
        '{"items": [1,]}',
        '{"items": [],}',
        '{"items": []} x',
        '{"items": [], "items": []}',
        '{"items" []}',
        "{1: 2}",
        '{"items": [tru]}',
        b'{"items": ["\xff"]}',
        b'{"items": []}\xc3',
    ],
)
def test_what_is_no_object_or_is_cut_off_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        read(text)


def test_a_document_that_is_too_large_is_refused_before_it_is_held():
    endless = iter([b'{"items": [', *[b'"%s",' % (b"x" * 1000)] * 10_000])

    with pytest.raises(ValueError, match="too large"):
        list(JsonItems(lambda _: next(endless), 100_000))


def test_what_is_nested_too_deeply_and_has_no_end_is_no_json():
    with pytest.raises(ValueError, match="not complete"):
        read('{"items": [' + "[" * 200_000, size=MOST)


@pytest.mark.parametrize("size", [7, 5_000, MOST])
@pytest.mark.parametrize("odd", ["[" * 9_000 + "]" * 9_000, "[" + "9" * 5_000 + "]"])
def test_one_item_that_python_cannot_hold_costs_no_other(odd, size):
    found, rest = read(f'{{"items": [1, {odd}, 2], "kind": "List"}}', size=size)

    assert (found[0], found[2], rest) == (1, 2, {"kind": "List"})
    assert isinstance(found[1], list)


def test_bytes_that_are_not_utf_8_cost_no_item_where_that_is_asked_for():
    text = b'{"items": ["a", "b\xff", "c"]}'

    assert list(JsonItems(in_pieces(text, 3), MOST, errors="replace")) == ["a", "b\ufffd", "c"]
    with pytest.raises(ValueError, match="utf-8"):
        list(JsonItems(in_pieces(text, 3), MOST))


def test_a_string_without_an_end_is_tried_again_a_few_times_only():
    pieces = []

    def read(most):
        pieces.append(most)
        return b'{"items": ["' if len(pieces) == 1 else b"x" * most

    with pytest.raises(ValueError, match="too large"):
        list(JsonItems(read, 64 << 20))
    assert len(pieces) < 15
