import resource
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from temper_core import EventKind
from temper_core.events import event_keeper
from temper_core.events.event_file import EventFile
from temper_core.events.event_keeper import EventKeeper, events_path
from temper_core.events.event_log import EventLog
from temper_core.events.kinds import KINDS
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(event_keeper, "BATCH_S", 0.01)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "events.jsonl"


@contextmanager
def kept(path):
    log = EventLog(clock=iter(range(10**9)).__next__)
    keeper = EventKeeper(log, path)
    keeper.open()
    try:
        yield log, keeper
    finally:
        keeper.close()


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def numbers(path):
    return [event.number for event in EventFile(path).read().events]


def test_events_are_kept_over_a_restart_and_the_numbers_go_on(path):
    with kept(path) as (log, _):
        log.record("agent_started")
        log.record("safe_mode_requested", "cli", "a drill")
    with kept(path) as (log, keeper):
        log.record("agent_started")
        found = log.after()

    assert [event.number for event in found] == [1, 2, 3]
    assert found[1].subject == "cli"
    assert keeper.defect == ""
    assert numbers(path) == [1, 2, 3]


def test_events_are_written_while_the_agent_runs(path):
    with kept(path) as (log, _):
        log.record("agent_started")
        wait_until(lambda: path.exists() and numbers(path) == [1])
        log.record("safe_mode_requested", "cli")
        wait_until(lambda: numbers(path) == [1, 2])


def test_an_event_that_comes_during_the_last_write_is_written_as_well(path, monkeypatch):
    has_written, may_go_on = threading.Event(), threading.Event()

    class SlowFile(EventFile):
        def append(self, lines):
            done = super().append(lines)
            has_written.set()
            may_go_on.wait(PATIENCE_S)
            return done

    monkeypatch.setattr(event_keeper, "EventFile", SlowFile)
    with kept(path) as (log, keeper):
        log.record("agent_started")
        has_written.wait(PATIENCE_S)
        log.record("agent_stopped")
        closing = threading.Thread(target=keeper.close)
        closing.start()
        time.sleep(0.2)  # close has asked the thread to end
        may_go_on.set()
        closing.join(PATIENCE_S)

    assert numbers(path) == [1, 2]


def test_the_file_stays_within_its_bound_and_keeps_what_is_rare(path, monkeypatch):
    monkeypatch.setattr(event_keeper, "EventFile", lambda at: EventFile(at, largest_bytes=20_000))
    with kept(path) as (log, _):
        log.record("safe_mode_requested", "cli")
        for number in range(600):
            log.record("profile_loaded", "x" * 100, f"{number}")
            if number % 20 == 0:
                wait_until(lambda: path.exists() and log.last in numbers(path)[-1:])
                assert path.stat().st_size <= 20_000
        last = log.last

    found = EventFile(path).read()
    assert found.damaged == 0
    assert found.events[0].kind == "safe_mode_requested"
    assert found.events[-1].number == last
    assert path.stat().st_size <= 20_000


def test_damaged_lines_are_skipped_counted_and_gone_at_the_next_start(path):
    with kept(path) as (log, _):
        log.record("agent_started")
    path.write_bytes(b"\0\0\0\n" + path.read_bytes() + b'{"number": 2, "at')

    with kept(path) as (log, _):
        [_, told] = log.after()
    with kept(path) as (log, _):
        again = log.after()

    assert (told.kind, told.reason) == ("events_damaged", "2 lines could not be read")
    assert [event.kind for event in again] == ["agent_started", "events_damaged"]


def test_a_disk_that_is_full_costs_only_the_file_until_there_is_room(path):
    with kept(path) as (log, keeper), capture_logs() as logs:
        log.record("agent_started")
        wait_until(path.exists)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 30, hard))
        try:
            log.record("safe_mode_requested", "cli")
            wait_until(lambda: keeper.defect)
            defect, in_memory = keeper.defect, len(log.after())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        log.record("safe_mode_released", "cli")
        wait_until(lambda: not keeper.defect)

    assert "events are not kept over a restart" in defect
    assert "File too large" in defect
    assert in_memory == 2
    assert numbers(path) == [1, 2, 3]
    assert EventFile(path).read().damaged == 0
    assert [each["event"] for each in logs] == ["events_not_written"]


@pytest.mark.skipif(not Path("/proc/1").exists(), reason="there is no /proc to be read-only")
def test_a_place_where_nothing_can_be_written_is_a_defect_and_no_failure():
    with kept(Path("/proc/no-such-place/events.jsonl")) as (log, keeper):
        log.record("agent_started")
        wait_until(lambda: keeper.defect)

        assert len(log.after()) == 1


def test_while_the_host_is_to_be_left_as_it_was_nothing_is_written(path):
    is_kept = [True]
    with kept(path) as (log, keeper):
        keeper.begin(lambda: is_kept[0])
        log.record("agent_started")
        wait_until(path.exists)
        is_kept[0] = False
        keeper.look()
        is_gone = not path.exists()
        log.record("safe_mode_requested", "cluster")
        time.sleep(0.1)
        stays_gone = not path.exists()
        is_kept[0] = True
        keeper.look()
        written = numbers(path)

    assert is_gone
    assert stays_gone
    assert written == [1, 2]


def test_a_restored_host_stays_clean_when_the_agent_ends(path):
    with kept(path) as (log, keeper):
        log.record("agent_started")
        wait_until(path.exists)
        keeper.begin(lambda: False)
        keeper.look()
        log.record("agent_stopped")

    assert list(path.parent.iterdir()) == []


def test_without_a_place_events_are_in_memory_alone():
    with kept(None) as (log, keeper):
        log.record("agent_started")

    assert keeper.defect == ""
    assert len(log.after()) == 1


def test_every_lane_at_its_fullest_fits_into_the_file(path):
    with kept(path) as (log, _):
        log.declare("tracer", [EventKind("trace_done", "A trace is done.")])
        for kind in (*[kind.name for kind in KINDS], "trace_done"):
            source = "tracer" if kind == "trace_done" else ""
            for _ in range(250):
                log.record(kind, "\U0001f600" * 200, "\U0001f600" * 500, source=source)
        last = log.last

    found = EventFile(path).read()
    assert path.stat().st_size <= 1024 * 1024
    assert found.damaged == 0
    assert found.events[-1].number == last
    assert {event.kind for event in found.events} == {kind.name for kind in KINDS} | {"trace_done"}


@pytest.mark.parametrize(("state", "found"), [("", None), ("/a/b.json", "/a/events.jsonl")])
def test_the_file_lies_beside_the_requests_for_safe_mode(state, found):
    assert events_path(Path(state)) == (Path(found) if found else None)
