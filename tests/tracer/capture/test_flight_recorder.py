"""The flight recorder by a real helper process: what writes its trace, and what ends it."""

import json
import subprocess
import sys
import time

import pytest

from temper_core import InputError, Severity, Violation
from temper_core.testing import MadeContext, make_snapshot
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.flight_recorder import FlightRecorder
from temper_plugin_tracer.capture.flight_request import FlightRequest
from temper_plugin_tracer.capture.request import TraceRequest
from temper_plugin_tracer.capture.running import HeldError
from temper_plugin_tracer.trace.perfetto.reader import PerfettoTrace
from tests.patience import PATIENCE_S
from tests.tracer.capture.conftest import (
    LONG_S,
    STORM,
    busy,
    files_of,
    is_alive,
    kill,
    merged_blocks,
    traces_of,
    until,
)
from tests.tracer.capture.test_capture_faults import mounted

INVARIANTS = ("rt_hog", "smt_collision")
ROUNDS = 15
"""So few that they end within the seconds that are kept, even on a busy host."""


@pytest.fixture
def flight(captures):
    """The flight recorder of an agent of its own."""
    return FlightRecorder(captures)


def look(*names):
    """Return a snapshot in which these invariants are violated."""
    violations = tuple(
        Violation(name, Severity.WARNING, f"subject of {name}", "", "", {}, 0.0) for name in names
    )
    return make_snapshot(violations=violations, invariants=INVARIANTS)


def recording(flight):
    """Wait until the helper records, and return its state."""
    until(lambda: flight.document().get("events"))
    return flight.document()


def test_it_is_off_until_somebody_asks(flight, captures, context):
    flight.tell(look("rt_hog"))
    assert flight.document() == {"is_on": False}
    assert flight.section() is None
    assert flight.check().detail == "is off"
    assert flight.dump("me") is None
    assert not flight.stop("me")
    assert captures.documents() == []
    assert context.recorded == []


def test_its_trace_has_the_last_seconds_before_it_is_asked_for(
    flight, captures, finish, spawn, tell
):
    with busy(spawn, tell, ROUNDS) as (sleeper, go):
        started = flight.start(FlightRequest(seconds=LONG_S, kept_seconds=2.0), "token ops")
        recording(flight)
        time.sleep(2.5)  # so that the beginning is overwritten or cut
        go()
        flight.dump("socket uid 0")
        entry = finish(captures, started["id"])
    assert (entry["kind"], entry["ended_by"]) == ("flight recorder", "asked")
    assert (entry["by"], entry["cause"]) == ("token ops", "socket uid 0")
    assert 1.9 < entry["seconds"] <= 2.0
    trace = PerfettoTrace(captures.trace(entry["id"]))
    events = merged_blocks(trace)
    assert int(events["ns"][-1] - events["ns"][0]) <= 2_000_000_000
    assert (events["next"] == sleeper.pid).sum() >= ROUNDS
    assert trace.facts.ended_by == "asked"
    assert files_of(captures) == [f"{entry['id']}.json", f"{entry['id']}.pftrace"]


def test_a_violation_that_begins_writes_the_trace(flight, captures, context, finish):
    flight.tell(look("rt_hog"))
    started = flight.start(FlightRequest(seconds=LONG_S, violations=("rt_hog",)), "me")
    recording(flight)
    for standing in (look("rt_hog"), look("rt_hog", "smt_collision"), look()):
        flight.tell(standing)
        assert flight.document()["state"] == "recording"
    captures.tell(look("rt_hog"))
    flight.tell(look("rt_hog"))
    entry = finish(captures, started["id"])
    assert (entry["ended_by"], entry["cause"]) == ("violation", "rt_hog: subject of rt_hog")
    assert b"Temper" in captures.trace(entry["id"]).read_bytes()
    assert "ended by violation (rt_hog: subject of rt_hog)" in context.recorded[-1][2]
    assert flight.document() == {"is_on": False}


def test_an_invariant_that_the_linter_does_not_have_is_refused(flight, captures):
    flight.tell(look())
    with pytest.raises(InputError, match="no invariant 'rt_hogs'; the linter has rt_hog"):
        flight.start(FlightRequest(violations=("rt_hogs",)), "me")
    assert captures.documents() == []


def test_it_ends_at_its_duration_without_a_trace(flight, captures, context):
    flight.start(FlightRequest(seconds=1.5), "me")
    until(lambda: not flight.document()["is_on"])
    kind, _, reason = context.recorded[-1]
    assert (kind, reason) == ("flight_recorder_ended", "its 1.5 s are over (asked by me)")
    assert files_of(captures) == []
    assert captures.documents() == []


def test_it_ends_itself_over_its_budget(flight, captures, context, spawn):
    spawn(STORM)
    flight.start(FlightRequest(seconds=60.0, cpu_ratio=0.001), "me")
    until(lambda: not flight.document()["is_on"])
    kind, _, reason = context.recorded[-1]
    assert kind == "flight_recorder_ended"
    assert "more than the 0.10% of its budget" in reason
    assert files_of(captures) == []


def test_it_is_stopped_without_a_trace(flight, captures, context):
    flight.start(FlightRequest(seconds=LONG_S), "me")
    helper = captures.running.helper.pid
    recording(flight)
    assert flight.stop("token ops")
    assert context.recorded[-1][0] == "flight_recorder_ended"
    assert "stopped by token ops" in context.recorded[-1][2]
    until(lambda: not is_alive(helper))
    assert files_of(captures) == []
    assert flight.start(FlightRequest(seconds=LONG_S), "me")["is_on"]


def test_a_capture_beside_it_is_refused_with_who_holds_it(flight, captures):
    flight.start(FlightRequest(seconds=LONG_S), "token ops")
    with pytest.raises(HeldError) as refused:
        captures.begin(TraceRequest(), "me")
    document = refused.value.holder.document()
    assert document["held_by"] == "token ops"
    assert document["error"].startswith("the flight recorder runs for token ops, for ")
    assert 0 < document["remaining_s"] <= LONG_S
    with pytest.raises(HeldError):
        flight.start(FlightRequest(), "me")


def test_it_is_refused_beside_a_capture(flight, captures):
    captures.begin(TraceRequest(seconds=LONG_S), "token ops")
    with pytest.raises(HeldError, match="token ops"):
        flight.start(FlightRequest(), "me")
    assert flight.document() == {"is_on": False}
    assert not flight.stop("me")


def test_its_state_and_its_cost_are_told(flight, spawn):
    spawn(STORM)
    flight.start(FlightRequest(seconds=LONG_S, violations=("rt_hog",), cpu_ratio=1.0), "token ops")
    until(lambda: flight.document().get("cpu_ratio"))
    document = flight.document()
    assert document["kernel_s"] > 0
    assert document["own_s"] > 0
    assert document["held_s"] > 0
    assert flight.section()["flight_recorder"]["is_on"]
    assert json.dumps(document)
    detail = flight.check().detail
    assert "for token ops" in detail
    assert "of a core, writes them at a violation of rt_hog, or when asked to" in detail


def test_a_storm_overwrites_the_oldest_on_all_cpus_alike(flight, captures, finish, spawn):
    spawn(STORM)
    asked = FlightRequest(seconds=60.0, kept_seconds=30.0, cpu_ratio=1.0)
    started = flight.start(asked, "me")
    until(lambda: flight.document().get("held_s", 99) < 0.9 * flight.document()["elapsed_s"])
    flight.dump("me")
    entry = finish(captures, started["id"])
    assert entry["state"] == "finished", entry
    assert entry["lost"] == 0
    events = merged_blocks(PerfettoTrace(captures.trace(entry["id"])))
    first = {int(cpu): int(events["ns"][events["cpu"] == cpu][0]) for cpu in set(events["cpu"])}
    assert max(first.values()) - min(first.values()) < 1_000_000_000
    assert entry["events"] <= 1 << 20


def test_the_trace_of_a_storm_keeps_its_bound_and_has_the_newest(flight, captures, finish, spawn):
    spawn(STORM)
    asked = FlightRequest(seconds=60.0, cpu_ratio=1.0, bytes=1 << 18)
    started = flight.start(asked, "me")
    until(lambda: flight.document().get("events", 0) > 100_000)
    before_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    flight.dump("me")
    entry = finish(captures, started["id"])
    assert entry["bytes"] <= 1 << 18
    events = merged_blocks(PerfettoTrace(captures.trace(entry["id"])))
    assert int(events["ns"][-1]) > before_ns


def test_nothing_is_left_where_its_helper_is_killed(flight, captures, context):
    flight.start(FlightRequest(seconds=LONG_S), "me")
    recording(flight)
    kill(captures.running.helper.pid)
    until(lambda: not flight.document()["is_on"])
    assert context.recorded[-1][0] == "trace_failed"
    assert files_of(captures) == []
    [entry] = captures.documents()
    assert (entry["state"], entry["kind"]) == ("failed", "flight recorder")


def test_nothing_is_left_where_the_agent_ends(flight, captures, context):
    flight.start(FlightRequest(seconds=LONG_S), "me")
    helper = captures.running.helper.pid
    recording(flight)
    captures.close()
    assert files_of(captures) == []
    assert context.recorded[-1] == (
        "flight_recorder_ended",
        "the whole node",
        "the agent ends (asked by me)",
    )
    until(lambda: not is_alive(helper))


AGENT = """
import sys, time
from pathlib import Path
from temper_core.testing import MadeContext
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.flight_recorder import FlightRecorder
from temper_plugin_tracer.capture.flight_request import FlightRequest
folder = Path(sys.argv[1])
context = MadeContext(folder=folder, with_processes=True, state_limit_bytes=264 << 20)
captures = Captures(context, lock_directory=folder / "run", free_bytes=0)
flight = FlightRecorder(captures)
flight.start(FlightRequest(seconds=60.0), "me")
running = captures.running
capture, helper = (running.id, running.helper.pid) if running else ("", 0)  # it failed at once
while captures.is_running(capture) and not flight.document().get("events"):
    time.sleep(0.05)
print("helper", helper, "numpy" in sys.modules, flush=True)
sys.stdin.readline()
flight.dump("me")
while captures.is_running(capture):
    time.sleep(0.05)
captures.files.disk.ask(lambda: None)  # it has removed the notes
import json
files = sorted(path.name for path in captures.store.directory.iterdir())
print(json.dumps([captures.documents(), files]), flush=True)
context.close()
"""


@pytest.fixture
def agent(bpf, tmp_path):
    """Start a process that has a flight recorder as an agent has."""
    del bpf
    started = []

    def start(*under):
        command = [*under, sys.executable, "-c", AGENT, str(tmp_path)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def until_it_records(process):
    """Return the helper's pid and whether numpy is in the agent when the recording has begun."""
    words = next(line for line in process.stdout if line.startswith("helper")).split()
    return int(words[1]), words[2]


def outcome_of(process):
    """Ask for the trace, and return the entries and the names of the files."""
    told, _ = process.communicate("\n", timeout=PATIENCE_S)
    return json.loads(told.splitlines()[-1])


def test_nothing_is_left_where_the_agent_is_killed(agent, context, tmp_path):
    process = agent()
    helper, has_numpy = until_it_records(process)
    assert has_numpy == "False"
    kill(process.pid)
    process.communicate()
    until(lambda: not is_alive(helper))
    assert not list(context.state.path.glob("*.pftrace"))
    captures = Captures(context, lock_directory=tmp_path / "run", free_bytes=0)
    assert files_of(captures) == []
    assert FlightRecorder(captures).start(FlightRequest(seconds=LONG_S), "me")["is_on"]
    captures.close()


def test_a_full_disk_refuses_it(agent, tmp_path):
    process = agent(*mounted(tmp_path, "4m"))
    entries, files = outcome_of(process)
    assert entries[0]["state"] == "failed"
    assert "MiB free" in entries[0]["reason"]
    assert files == []


def test_a_disk_that_has_filled_meanwhile_fails_the_trace_and_leaves_nothing(agent, tmp_path):
    process = agent(*mounted(tmp_path, "40m"))
    helper, _ = until_it_records(process)
    filler = f"head -c 20m /dev/zero > {tmp_path}/filler"
    subprocess.run(["nsenter", "--mount", f"--target={helper}", "sh", "-c", filler], check=True)
    entries, files = outcome_of(process)
    assert entries[0]["state"] == "failed"
    assert "MiB free" in entries[0]["reason"]
    assert files == []


def test_without_the_capability_the_reason_is_told(agent):
    under = ("setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", "--inh-caps=-all")
    entries, files = outcome_of(agent(*under))
    assert entries[0]["state"] == "failed"
    assert "the flight recorder needs the backend bpf" in entries[0]["reason"]
    assert "CAP_BPF" in entries[0]["reason"]
    assert files == []


def test_another_agent_of_the_host_is_told_who_holds_it(flight, captures, tmp_path):
    flight.start(FlightRequest(seconds=LONG_S), "token ops")
    context = MadeContext(folder=tmp_path / "other", with_processes=True)
    other = Captures(context, lock_directory=tmp_path / "run")
    with pytest.raises(HeldError, match="token ops"):
        other.begin(TraceRequest(), "me")
    assert traces_of(captures) == []
    context.close()
