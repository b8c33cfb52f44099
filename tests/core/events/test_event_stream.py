import json
import threading
from itertools import islice

import pytest

from temper_core import InputError, Request
from temper_core.events.endpoints import EventEndpoints
from temper_core.events.event_log import EventLog
from temper_core.events.event_stream import KEEP_ALIVE, streamed
from temper_core.events.query import Query, read_query
from temper_core.records.events import Event


@pytest.fixture
def log():
    made = EventLog()
    made.record("agent_started")
    made.record("safe_mode_requested", "cli", "a drill\nof two lines")
    return made


def endpoint(log, name):
    [found] = [each for each in EventEndpoints(lambda: log).table() if each.name == name]
    return found.answer


def test_a_stream_begins_at_once_and_has_each_event_with_its_number_and_kind(log):
    head, first, second = islice(streamed(log, Query()), 3)

    lines = second.decode().split("\n")
    assert head == KEEP_ALIVE
    assert first.startswith(b"event: agent_started\nid: 1\ndata: {")
    assert lines[:2] == ["event: safe_mode_requested", "id: 2"]
    assert json.loads(lines[2].removeprefix("data: "))["reason"] == "a drill of two lines"
    assert lines[3:] == ["", ""]


def test_a_quiet_stream_shows_that_it_lives(log):
    stream = streamed(log, Query(after=2), keep_alive_s=0.01)

    assert list(islice(stream, 3)) == [KEEP_ALIVE] * 3


def test_an_event_is_streamed_when_it_comes_and_the_end_of_the_log_is_the_streams(log):
    received = []

    def read():
        received.extend(streamed(log, Query(after=2), keep_alive_s=30))

    reading = threading.Thread(target=read)
    reading.start()
    log.record("safe_mode_released", "cli")
    log.close()
    reading.join(20)

    assert not reading.is_alive()
    assert [each.split(b"\n")[0] for each in received[1:]] == [b"event: safe_mode_released"]


def test_a_stream_of_some_kinds_has_no_others(log):
    log.close()

    found = list(streamed(log, Query(kinds=frozenset({"safe_mode_requested"}))))

    assert [each[:26] for each in found[1:]] == [b"event: safe_mode_requested"]


def test_many_streams_read_the_same_events(log):
    received = [[] for _ in range(8)]
    threads = [
        threading.Thread(target=lambda into=into: into.extend(streamed(log, Query())))
        for into in received
    ]
    for thread in threads:
        thread.start()
    for number in range(50):
        log.record("profile_loaded", f"p{number}")
    log.close()
    for thread in threads:
        thread.join(20)

    assert all(len([each for each in got if each != KEEP_ALIVE]) == 52 for got in received)


@pytest.mark.parametrize(
    ("query", "headers", "first"),
    [
        ({}, {}, None),
        ({"since": "1"}, {}, b"id: 2"),
        ({"since": "10m"}, {}, b"id: 1"),
        ({}, {"last-event-id": "1"}, b"id: 2"),
        ({"since": "0"}, {"last-event-id": "1"}, b"id: 2"),
        ({"since": "99"}, {}, b"id: 1"),
    ],
)
def test_a_stream_goes_on_where_its_reader_was(log, query, headers, first):
    answer = endpoint(log, "stream-events")(Request(query, headers=headers))
    log.close()

    streamed_events = [each for each in answer.stream if each != KEEP_ALIVE]

    assert answer.media_type == "text/event-stream"
    assert (streamed_events[0].split(b"\n")[1] if streamed_events else None) == first


def test_a_header_that_is_no_number_is_the_readers_mistake(log):
    with pytest.raises(InputError, match="since: must be"):
        endpoint(log, "stream-events")(Request(headers={"last-event-id": "1\nx"}))


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({}, [1, 2]),
        ({"since": "1"}, [2]),
        ({"since": "2"}, []),
        ({"since": "3"}, [1, 2]),
        ({"kind": "agent_started,agent_stopped"}, [1]),
        ({"limit": "1"}, [2]),
        ({"since": "1h"}, [1, 2]),
        ({"since": "0s"}, []),
    ],
)
def test_events_are_listed_from_a_number_or_an_age_by_kind_and_within_a_limit(log, query, numbers):
    document = endpoint(log, "list-events")(Request(query))

    assert [event["number"] for event in document["events"]] == numbers
    assert document["last"] == 2


@pytest.mark.parametrize(
    "query",
    [
        {"since": "yesterday"},
        {"since": "-1"},
        {"since": "1" * 16},
        {"since": "\u0661"},
        {"since": "1w"},
        {"kind": "A"},
        {"kind": "a,,b"},
        {"kind": "a" * 10**5},
        {"limit": "0"},
        {"limit": "10001"},
        {"limit": "1.5"},
    ],
)
def test_a_query_that_makes_no_sense_is_refused(query):
    with pytest.raises(InputError, match=next(iter(query))):
        read_query(query)


def test_kinds_are_listed_with_their_source_and_meaning(log):
    kinds = endpoint(log, "list-event-kinds")(Request())["kinds"]

    found = {kind["name"]: kind for kind in kinds}
    assert found["engine_ejected"]["level"] == "error"
    assert {kind["source"] for kind in kinds} == {"agent"}


@pytest.mark.parametrize("name", ["list-events", "stream-events"])
def test_a_kind_that_nothing_declares_is_refused_with_the_one_that_was_meant(log, name):
    request = Request({"kind": "agent_started,agent_startd"})

    with pytest.raises(InputError) as refused:
        endpoint(log, name)(request)

    assert str(refused.value) == (
        "kind: there is none called 'agent_startd'; did you mean 'agent_started'?"
        " (see /events/kinds)"
    )


def test_a_kind_of_kept_events_is_known_though_its_instrument_has_gone(log):
    log.remember([Event(7, 1.0, "trace_done", source="tracer")])

    found = endpoint(log, "list-events")(Request({"kind": "trace_done"}))

    assert [event["number"] for event in found["events"]] == [7]
