"""Whole captures by a real helper process: bounds, refusals, and what is left after an end."""

import threading
import time

import pytest

from temper_core import InputError, MachineError
from temper_core.testing import MadeContext, make_snapshot
from temper_plugin_tracer.capture.bounds import LEAST_BYTES
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.request import TraceRequest
from temper_plugin_tracer.capture.running import HeldError
from tests.tracer.capture.conftest import (
    LONG_S,
    STORM,
    busy,
    files_of,
    traces_of,
    wait_until_recording,
)


def test_a_capture_is_kept_with_its_summary_and_its_events(captures, context, finish):
    begun = captures.begin(TraceRequest(seconds=0.5), "socket uid 0")
    assert begun["state"] == "recording"
    entry = finish(captures, begun["id"])
    assert entry["ended_by"] == "seconds"
    assert entry["seconds"] == pytest.approx(0.5, abs=0.4)
    assert entry["events"] > 0
    assert entry["lost"] == 0
    assert files_of(captures) == [f"{begun['id']}.json", f"{begun['id']}.pftrace"]
    assert captures.trace(begun["id"]).stat().st_size == entry["bytes"]
    kinds = [(kind, "socket uid 0" in reason) for kind, _, reason in context.recorded]
    assert kinds == [("trace_begun", True), ("trace_finished", True)]


def test_the_trace_is_never_larger_than_its_bound(captures, finish, spawn):
    spawn(STORM)
    begun = captures.begin(TraceRequest(seconds=LONG_S, bytes=LEAST_BYTES), "me")
    entry = finish(captures, begun["id"])
    assert entry["ended_by"] == "bytes"
    assert LEAST_BYTES * 0.7 < entry["bytes"] <= LEAST_BYTES
    assert entry["seconds"] < LONG_S


def test_the_bound_on_events_is_kept(captures, finish, spawn):
    spawn(STORM)
    begun = captures.begin(TraceRequest(seconds=LONG_S, events=1000), "me")
    entry = finish(captures, begun["id"])
    assert (entry["ended_by"], entry["events"]) == ("events", 1000)


def test_a_second_request_is_told_who_captures_and_for_how_long(captures, finish):
    begun = captures.begin(TraceRequest(seconds=LONG_S), "token ops")
    with pytest.raises(HeldError) as refused:
        captures.begin(TraceRequest(), "socket uid 7")
    document = refused.value.holder.document()
    assert document["held_by"] == "token ops"
    assert 0 < document["remaining_s"] <= LONG_S
    assert captures.end(begun["id"], "token ops")["state"] == "writing"
    entry = finish(captures, begun["id"])
    assert entry["ended_by"] == "asked"
    assert entry["seconds"] < LONG_S
    assert captures.begin(TraceRequest(seconds=0.1), "me")


def test_a_capture_whose_helper_has_yet_to_end_is_listed_once(captures):
    begun = captures.begin(TraceRequest(seconds=LONG_S), "me")
    wait_until_recording()
    (captures.store.directory / f"{begun['id']}.pftrace").write_bytes(b"whole")

    listed = captures.documents()

    assert [(entry["id"], entry["state"]) for entry in listed] == [(begun["id"], "recording")]


def test_of_two_requests_at_once_one_captures(captures):
    outcomes = []

    def ask():
        try:
            outcomes.append(captures.begin(TraceRequest(seconds=LONG_S), "me")["state"])
        except HeldError:
            outcomes.append("held")

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["held", "recording"]


def test_another_agent_of_the_host_is_told_who_captures(captures, tmp_path):
    captures.begin(TraceRequest(seconds=LONG_S), "token ops")
    context = MadeContext(folder=tmp_path / "other", with_processes=True)
    other = Captures(context, lock_directory=tmp_path / "run")
    with pytest.raises(HeldError, match="token ops"):
        other.begin(TraceRequest(), "me")
    captures.close()
    assert other.begin(TraceRequest(seconds=LONG_S), "me")
    other.close()
    assert not (tmp_path / "run").exists()
    context.close()


def test_the_newest_four_are_kept(captures, finish):
    ids = []
    for _ in range(5):
        ids.append(captures.begin(TraceRequest(seconds=0.1), "me")["id"])
        finish(captures, ids[-1])
        time.sleep(1.0)  # ids sort by the second
    assert traces_of(captures) == sorted(f"{each}.pftrace" for each in ids[1:])


def test_a_pod_that_is_not_there_is_refused(captures):
    with pytest.raises(InputError, match="is no pod of this node"):
        captures.begin(TraceRequest(pod="shop/web"), "me")


def test_a_process_is_captured(captures, finish, spawn, tell):
    with busy(spawn, tell, 100) as (sleeper, go):
        begun = captures.begin(TraceRequest(seconds=LONG_S, process=sleeper.pid), "me")
        wait_until_recording()
        go()
        captures.end(begun["id"], "me")
        entry = finish(captures, begun["id"])
    assert entry["selection"] == f"process {sleeper.pid}"
    assert entry["events"] >= 200


def test_what_the_agent_saw_while_it_recorded_is_in_the_trace(captures, context, finish):
    captures.tell(make_snapshot())
    context.record("safe_mode_left", "before the recording")
    begun = captures.begin(TraceRequest(seconds=LONG_S), "me")
    wait_until_recording()
    context.record("safe_mode_entered", "during the recording")
    captures.tell(make_snapshot())
    captures.end(begun["id"], "me")
    trace = captures.trace(finish(captures, begun["id"])["id"]).read_bytes()
    assert b"Temper" in trace
    assert b"safe_mode_entered: during the recording" in trace
    assert b"before the recording" not in trace


def test_without_a_state_directory_a_capture_is_refused(tmp_path):
    captures = Captures(MadeContext(with_processes=True), lock_directory=tmp_path / "run")
    with pytest.raises(MachineError):
        captures.begin(TraceRequest(), "me")
    assert captures.begin is not None
