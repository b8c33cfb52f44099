"""Summaries are in lists of all records, such as ``GET /index``, so their length has a bound."""

import pytest

from temper_core import Command, Endpoint, EventKind, PodSource

MAKE = {
    "endpoint": lambda text: Endpoint("one", "GET", "/one", text, print),
    "event kind": lambda text: EventKind("one", text),
    "command": lambda text: Command("one", text, print),
    "pod source": lambda text: PodSource("one", print, text),
}


@pytest.mark.parametrize("kind", MAKE)
def test_a_summary_has_a_thousand_characters_at_most(kind):
    assert MAKE[kind]("x" * 1000).summary == "x" * 1000
    with pytest.raises(ValueError, match="summary"):
        MAKE[kind]("x" * 1001)


def test_a_path_has_five_hundred_characters_at_most():
    assert Endpoint("one", "GET", "/" + "x" * 500, "One.", print)
    with pytest.raises(ValueError, match="path"):
        Endpoint("one", "GET", "/" + "x" * 501, "One.", print)
