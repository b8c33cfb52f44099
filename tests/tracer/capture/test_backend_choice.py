"""Which way to record is taken, and what is told of those that were not."""

import pytest

from temper_core import BpfError, MachineError
from temper_plugin_tracer.capture import backends
from temper_plugin_tracer.capture.backend_names import (
    CHOICES,
    NAMES,
    names_to_try,
    reasons_in_words,
)
from temper_plugin_tracer.capture.backends import OPENERS, open_recorder
from temper_plugin_tracer.capture.selection import Selection

SELECTION = Selection("a process", processes=(7,))


@pytest.fixture
def tried(monkeypatch):
    """Openers that refuse, but for those that a test names, and what they were asked for."""
    asked = []

    def opening(name, error=None):
        def opener(selection):
            asked.append((name, selection))
            if error is not None:
                raise error
            return f"the recorder {name}"

        return opener

    refusals = {
        "bpf": BpfError("cannot load", 1),
        "tracefs": MachineError("tracefs is not mounted"),
        "bcc": OSError(13, "Permission denied"),
    }

    def work(*working):
        openers = {n: opening(n, None if n in working else refusals[n]) for n in OPENERS}
        monkeypatch.setattr(backends, "OPENERS", openers)
        return asked

    return work


def test_auto_tries_all_by_their_order_and_a_name_only_itself():
    assert NAMES == ("bpf", "tracefs", "bcc", "perfetto")
    assert names_to_try("auto") == NAMES
    assert [names_to_try(name) for name in NAMES] == [(name,) for name in NAMES]
    assert ("auto", *NAMES) == CHOICES


def test_the_first_that_opens_is_taken_and_none_after_it_is_tried(tried):
    asked = tried("tracefs", "bcc")

    opened = open_recorder("auto", SELECTION)

    assert opened.recorder == "the recorder tracefs"
    assert asked == [("bpf", SELECTION), ("tracefs", SELECTION)]
    assert set(opened.refused) == {"bpf"}


def test_all_that_refused_are_told_by_their_order(tried):
    tried()

    opened = open_recorder("auto", SELECTION)

    assert opened.recorder is None
    assert list(opened.refused) == ["bpf", "tracefs", "bcc"]
    words = reasons_in_words(opened.refused)
    assert "tracefs: tracefs is not mounted; bcc: [Errno 13] Permission denied" in words


@pytest.mark.parametrize("name", OPENERS)
def test_a_named_one_is_taken_or_refused_alone(tried, name):
    asked = tried()
    refused = open_recorder(name, SELECTION)
    tried(name)
    taken = open_recorder(name, SELECTION)

    assert refused.recorder is None
    assert list(refused.refused) == [name]
    assert taken.recorder == f"the recorder {name}"
    assert taken.refused == {}
    assert [each for each, _ in asked] == [name, name]


def test_perfetto_has_no_recorder_because_it_gives_a_whole_trace(tried):
    asked = tried("bpf", "tracefs", "bcc")

    assert open_recorder("perfetto", SELECTION).recorder is None
    assert asked == []
