import threading

import pytest

from temper_core import EventKind, InputError
from temper_core.events.event_log import MOST_KINDS, AuditEntry, EventLog
from temper_core.events.kinds import KINDS
from temper_core.events.lanes import BURST, NEWEST_KEPT


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log(clock):
    made = EventLog(wall=lambda: 1000.0, clock=clock)
    made.declare("tracer", [EventKind("trace_done", "A trace is done.", "warning")])
    return made


def fill(log, clock, count, kind="profile_loaded", source=""):
    for number in range(count):
        clock.now += 1
        log.record(kind, f"s{number}", source=source)


def test_an_event_has_a_number_a_time_a_source_and_the_level_of_its_kind(log):
    log.record("safe_mode_requested", "cli", "a drill", asked=AuditEntry("socket uid 0", "done"))
    log.record("trace_done", "web", source="tracer")

    first, second = log.after()

    assert (first.number, first.at, first.source, first.level) == (1, 1000.0, "agent", "warning")
    assert (first.requester, first.outcome) == ("socket uid 0", "done")
    assert (second.number, second.source, second.level) == (2, "tracer", "warning")
    assert log.after(1) == (second,)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("tracer", "agent_started"),
        ("tracer", "nothing"),
        ("other", "trace_done"),
        ("tracer", ["trace_done"]),
        ("tracer", None),
    ],
)
def test_a_kind_that_is_not_declared_by_its_source_is_refused(log, source, kind):
    with pytest.raises(InputError, match=f"{source} declares no event kind"):
        log.record(kind, source=source)

    assert log.last == 0


@pytest.mark.parametrize("text", [7, None, b"bytes", ["list"], object()])
@pytest.mark.parametrize("field", ["subject", "reason"])
def test_what_is_no_text_is_refused(log, field, text):
    with pytest.raises(InputError, match="is described by text"):
        log.record("trace_done", source="tracer", **{field: text})


def test_text_is_one_printable_line_of_bounded_length(log):
    log.record("trace_done", "a\x1b[31m\nb\0\ud800" + "x" * 10**7, "r" * 501, source="tracer")

    [event] = log.after()

    assert event.subject.startswith("a [31m b xxx")
    assert event.subject.isprintable()
    assert (len(event.subject), len(event.reason)) == (200, 500)


def test_a_text_class_with_a_will_of_its_own_becomes_plain_text(log):
    class Odd(str):
        __slots__ = ()

        def __str__(self):
            raise RuntimeError

    log.record("trace_done", Odd("web"), source="tracer")

    assert type(log.after()[0].subject) is str


def test_a_busy_lane_pushes_nothing_out_of_another(log, clock):
    log.record("safe_mode_requested", "cli")
    fill(log, clock, 3 * NEWEST_KEPT)
    fill(log, clock, 3 * NEWEST_KEPT, "trace_done", "tracer")

    kept = log.after()

    assert kept[0].kind == "safe_mode_requested"
    assert len(kept) == 1 + 2 * NEWEST_KEPT
    assert [event.number for event in kept] == sorted(event.number for event in kept)
    assert log.newest(1)[-1].number == log.last


def test_what_comes_too_fast_is_counted_and_recorded_once(log, clock):
    for _ in range(BURST + 50):
        log.record("trace_done", source="tracer")
    log.record("safe_mode_requested", "cli")
    log.record_dropped()
    for _ in range(30):
        log.record("trace_done", source="tracer")
    log.record_dropped()
    early = [event for event in log.after() if event.kind == "events_dropped"]
    clock.now += 10
    log.record_dropped()
    log.record_dropped()

    dropped = [event for event in log.after() if event.kind == "events_dropped"]

    assert [event.kind for event in log.after()].count("trace_done") == BURST
    assert len(early) == 1
    assert [(event.subject, event.reason.split()[0]) for event in dropped] == [
        ("tracer", "50"),
        ("tracer", "30"),
    ]
    assert log.counts()["trace_done"] == BURST + 80
    assert "safe_mode_requested" in log.counts()


def test_a_lane_takes_events_again_after_a_while(log, clock):
    for _ in range(BURST + 1):
        log.record("trace_done", source="tracer")
    clock.now += 1

    for _ in range(30):
        log.record("trace_done", source="tracer")

    assert len(log.after()) == BURST + 20


def test_an_instrument_declares_no_kind_of_the_agents_own_and_not_too_many(log):
    many = [EventKind(f"kind_{number}", "One of many.") for number in range(MOST_KINDS + 5)]

    clash = log.declare("odd", [EventKind("agent_stopped", "Not true."), EventKind("fine", "Is.")])
    flood = log.declare("vast", many)

    log.record("fine", source="odd")
    assert clash == "agent_stopped is a kind of the agent's own"
    assert flood == f"5 kinds are more than {MOST_KINDS}"
    assert len(log.kinds) == len(KINDS) + 1 + 1 + MOST_KINDS


def test_waiting_ends_with_the_next_event_and_with_the_log(log):
    woken = []
    waiting = threading.Thread(target=lambda: woken.append(log.wait(0, 20)))
    waiting.start()
    log.record("agent_started")
    waiting.join(20)
    other = threading.Thread(target=lambda: woken.append(log.wait(1, 20)))
    other.start()
    log.close()
    other.join(20)

    assert woken == [True, False]
    assert log.wait(1, 0.0) is False


def test_threads_that_record_at_once_lose_no_number(log):
    def record():
        for _ in range(20):
            log.record("trace_done", source="tracer")

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [event.number for event in log.after()] == list(range(1, 81))


def test_kinds_have_names_and_meanings_of_their_own():
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert all(kind.summary.endswith(".") for kind in KINDS)
