import json
import os
import stat

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temper_core import Event, EventLevel
from temper_core.events import event_file
from temper_core.events.document import event_document, event_line, read_line
from temper_core.events.event_file import EventFile, HeldError

TEXT = st.text(max_size=40).map(lambda text: "".join(filter(str.isprintable, text)))
EVENTS = st.builds(
    Event,
    number=st.integers(1, 2**50),
    at=st.floats(0, 2**31),
    kind=st.from_regex(r"[a-z][a-z0-9_]{0,62}", fullmatch=True),
    subject=TEXT,
    reason=TEXT,
    source=st.from_regex(r"[a-z][a-z0-9-]{0,40}", fullmatch=True),
    requester=TEXT,
    outcome=TEXT,
    level=st.sampled_from([level.value for level in EventLevel]),
)
ODD = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)
IN_A_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def an_event(number, **changes):
    return Event(**{"number": number, "at": 1.0, "kind": "trace_done", **changes})


@pytest.fixture
def file(tmp_path):
    made = EventFile(tmp_path / "state" / "events.jsonl")
    yield made
    made.close()


@given(EVENTS)
def test_an_event_is_read_back_as_it_was_written(event):
    assert read_line(event_line(event)) == event
    assert json.loads(json.dumps(event_document(event))) == attrs.asdict(event)


@given(st.binary(max_size=200))
def test_no_line_is_an_event_by_chance(line):
    assert read_line(line) is None


@given(EVENTS, st.sampled_from([each.name for each in attrs.fields(Event)] + ["more"]), ODD)
def test_a_field_that_is_odd_is_either_refused_or_what_an_event_may_have(event, name, odd):
    found = read_line(json.dumps({**attrs.asdict(event), name: odd}).encode())

    if found is not None:
        assert read_line(event_line(found)) == found
        assert type(found.number) is int
        assert all(isinstance(getattr(found, each), str) for each in ("kind", "subject", "level"))


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"number":1,"at":1,"kind":"a","subject":"' + b"x" * 201 + b'"}',
        b'{"number":true,"at":1,"kind":"a"}',
        b'{"number":1,"at":NaN,"kind":"a"}',
        b'{"number":1,"at":1' + b"0" * 400 + b',"kind":"a"}',
        b'{"number":1,"at":1,"kind":"a","subject":"\\u001b[31m"}',
        b'{"number":1,"at":1,"kind":"a","subject":"\\ud800"}',
        b'{"number":1,"at":1,"kind":""}',
        b'{"number":1,"at":1,"kind":"a","level":"loud"}',
        b'{"number":0,"at":1,"kind":"a"}',
        b'{"number":' + b"9" * 5000 + b',"at":1,"kind":"a"}',
    ],
)
def test_a_line_that_an_agent_never_writes_is_damaged(line):
    assert read_line(line) is None


@given(st.lists(st.binary(max_size=30) | st.just(b"good"), max_size=12))
@IN_A_FOLDER
def test_damaged_lines_are_counted_and_the_others_read(tmp_path, pieces):
    path = tmp_path / "events.jsonl"
    pieces = [piece.replace(b"\n", b"") for piece in pieces]
    good = pieces.count(b"good")
    lines, number = [], 0
    for piece in pieces:
        number += piece == b"good"
        lines.append(event_line(an_event(number)) if piece == b"good" else piece + b"\n")
    path.write_bytes(b"".join(lines))

    found = EventFile(path).read()

    assert [event.number for event in found.events] == list(range(1, good + 1))
    assert found.damaged == len(pieces) - good


def test_lines_are_added_and_read_back_by_another(file):
    assert file.append([event_line(an_event(1)), event_line(an_event(2))])
    assert file.append([event_line(an_event(3))])

    assert [event.number for event in EventFile(file.path).read().events] == [1, 2, 3]
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def test_a_file_that_is_full_is_to_be_replaced_and_never_larger(tmp_path):
    file = EventFile(tmp_path / "events.jsonl", largest_bytes=500)
    taken = 0
    while file.append([event_line(an_event(taken + 1))]):
        taken += 1

    size = file.path.stat().st_size
    file.replace([event_line(an_event(taken))])
    file.append([event_line(an_event(taken + 1))])
    file.close()

    assert 0 < size <= 500
    assert [event.number for event in file.read().events] == [taken, taken + 1]
    assert list(tmp_path.iterdir()) == [file.path]


def test_a_line_that_was_cut_off_is_not_continued(file):
    file.append([event_line(an_event(1))])
    file.close()
    file.path.write_bytes(file.path.read_bytes() + b'{"number":2,"at"')

    assert not file.append([event_line(an_event(3))])
    assert EventFile(file.path).read().damaged == 1


def test_a_file_that_somebody_removed_is_made_anew(file):
    file.append([event_line(an_event(1))])
    file.path.unlink()

    file.append([event_line(an_event(2))])

    assert [event.number for event in EventFile(file.path).read().events] == [2]


def test_of_two_agents_one_writes(file):
    file.append([event_line(an_event(1))])
    other = EventFile(file.path)

    for write in (other.append, other.replace):
        with pytest.raises(OSError, match="is written by another agent"):
            write([event_line(an_event(2))])
    file.close()
    written_now = other.append([event_line(an_event(2))])
    other.close()

    assert written_now
    assert list(file.path.parent.iterdir()) == [file.path]


def test_the_file_is_held_from_its_opening_until_its_close(file):
    other = EventFile(file.path)
    file.hold()

    with pytest.raises(HeldError, match="is written by another agent"):
        other.hold()
    file.replace([event_line(an_event(1))])
    with pytest.raises(HeldError, match="is written by another agent"):
        other.hold()
    file.close()
    other.hold()
    other.close()

    assert [event.number for event in file.read().events] == [1]


def test_a_look_at_the_lock_keeps_no_agent_from_its_start(file, monkeypatch):
    other = EventFile(file.path)
    other.hold()
    monkeypatch.setattr(event_file.time, "sleep", lambda _: other.close())

    file.hold()

    assert file.append([event_line(an_event(1))])


def test_a_file_that_is_replaced_between_opening_and_locking_is_not_held(file, monkeypatch):
    file.hold()
    file.close()

    def replaced(path, *arguments):
        descriptor = real_open(path, *arguments)
        if not names:
            names.append(path)
            beside = file.path.with_name("new")
            beside.touch()
            beside.replace(file.path)
        return descriptor

    real_open, names = os.open, []
    monkeypatch.setattr(event_file.os, "open", replaced)
    file.hold()

    with pytest.raises(HeldError):
        EventFile(file.path).hold()


def test_a_link_a_pipe_and_a_directory_in_its_place_are_refused_at_once(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    (tmp_path / "link").symlink_to(elsewhere)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()

    for name in ("link", "pipe", "folder"):
        file = EventFile(tmp_path / name)
        with pytest.raises(OSError, match=r".+"):
            file.read()
        with pytest.raises(OSError, match=r".+"):
            file.append([b"{}\n"])

    assert elsewhere.read_text() == "precious"


def test_of_a_file_beyond_all_bounds_the_end_is_read(tmp_path):
    file = EventFile(tmp_path / "events.jsonl", largest_bytes=1000)
    file.path.write_bytes(b"x" * 10**6 + b"\n" + event_line(an_event(7)))

    assert [event.number for event in file.read().events] == [7]
