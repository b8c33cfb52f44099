"""Whole captures by a real helper process: bounds, refusals, and what is left after an end."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from temper_core import InputError, MachineError
from temper_core.testing import MadeContext, make_snapshot
from temper_plugin_tracer.capture.bounds import LEAST_BYTES
from temper_plugin_tracer.capture.captures import Captures, HeldError
from temper_plugin_tracer.capture.request import TraceRequest
from tests.patience import PATIENCE_S
from tests.tracer.capture.conftest import (
    MIB,
    busy,
    files_of,
    is_alive,
    kill,
    traces_of,
    wait_until_recording,
)

LONG_S = 30.0
STORM = """
import os, sys
print("ready", flush=True)
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(there[1])
    os.close(0)
    os.close(1)
    while os.write(back[1], os.read(there[0], 1)): pass
    os._exit(0)
os.close(back[1])
while True:
    os.write(there[1], b"x")
    os.read(back[0], 1)
"""
"""Switches as fast as the kernel can."""


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
    assert list((tmp_path / "run").iterdir()) == []
    context.close()


def test_nothing_is_left_of_a_capture_whose_helper_is_killed(captures, context, finish):
    begun = captures.begin(TraceRequest(seconds=LONG_S), "me")
    time.sleep(1.0)
    kill(captures._running.helper.pid)
    entry = finish(captures, begun["id"])
    assert entry["state"] == "failed"
    assert "SIGKILL" in entry["reason"] or "signal" in entry["reason"]
    assert files_of(captures) == []
    assert context.recorded[-1][0] == "trace_failed"


AGENT = """
import sys, time
from pathlib import Path
from temper_core.testing import MadeContext
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.request import TraceRequest
folder = Path(sys.argv[1])
context = MadeContext(folder=folder, with_processes=True, state_limit_bytes=264 << 20)
captures = Captures(context, lock_directory=folder / "run", free_bytes=int(sys.argv[2]))
captures.begin(TraceRequest(**eval(sys.argv[3])), "me")
print(captures._running.helper.pid, flush=True)
while captures.is_running(captures.documents()[0]["id"]):
    time.sleep(0.05)
import json
files = sorted(path.name for path in captures.store.directory.iterdir())
print(json.dumps([captures.documents(), files]), file=sys.stderr)
context.close()
"""


def agent(folder, request, *, free_bytes=0, under=()):
    """Start a process that captures as an agent does."""
    command = [*under, sys.executable, "-c", AGENT, str(folder), str(free_bytes), repr(request)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome_of(process):
    """Return the entries and the names of the files when a capture of ``agent`` is over."""
    _, errors = process.communicate(timeout=PATIENCE_S)
    entries, files = json.loads(errors.splitlines()[-1])
    return entries, files


@pytest.mark.usefixtures("bpf")
def test_nothing_is_left_of_a_capture_whose_agent_is_killed(context, tmp_path):
    process = agent(tmp_path, {"seconds": LONG_S})
    helper = next(int(line) for line in process.stdout if line.strip().isdecimal())
    time.sleep(1.0)
    assert is_alive(helper)
    kill(process.pid)
    process.communicate()
    deadline = time.monotonic() + PATIENCE_S
    while is_alive(helper):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    directory = context.state.path
    assert not list(directory.glob("*.pftrace"))
    captures = Captures(context, lock_directory=tmp_path / "run", free_bytes=0)
    assert files_of(captures) == []
    assert captures.begin(TraceRequest(seconds=0.1), "me")
    captures.close()


@pytest.mark.usefixtures("bpf")
def test_a_full_disk_refuses_a_capture(tmp_path):
    under = mounted(tmp_path, "4m")
    entries, files = outcome_of(agent(tmp_path, {"seconds": 1.0}, under=under))
    assert entries[0]["state"] == "failed"
    assert "4 MiB free" in entries[0]["reason"] or "3 MiB free" in entries[0]["reason"]
    assert files == []


@pytest.mark.usefixtures("bpf")
def test_a_disk_that_fills_ends_a_capture_which_is_kept(tmp_path, spawn):
    spawn(STORM)
    under = mounted(tmp_path, "3m")
    asked = {"seconds": LONG_S, "bytes": 2 * MIB}
    entries, files = outcome_of(agent(tmp_path, asked, under=under))
    assert entries[0]["state"] == "finished", entries
    assert entries[0]["ended_by"] == "disk"
    assert any(name.endswith(".pftrace") for name in files)


@pytest.mark.usefixtures("bpf")
def test_without_the_capability_nothing_is_captured_and_the_reason_is_told(tmp_path):
    under = ("setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", "--inh-caps=-all")
    entries, files = outcome_of(agent(tmp_path, {"seconds": 1.0}, under=under))
    assert entries[0]["state"] == "failed"
    assert "no way to record works here: bpf:" in entries[0]["reason"]
    assert "CAP_BPF" in entries[0]["reason"]
    assert files == []


def test_a_storm_of_threads_is_captured_and_its_losses_are_counted(captures, finish, spawn, tell):
    births = spawn(
        "import sys, threading\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    for _ in range(int(line)):\n"
        "        thread = threading.Thread(target=int)\n"
        "        thread.start()\n"
        "        thread.join()\n"
        "    print('done', flush=True)\n"
    )
    begun = captures.begin(TraceRequest(seconds=LONG_S), "me")
    time.sleep(1.5)
    tell(births, 20_000)
    captures.end(begun["id"], "me")
    entry = finish(captures, begun["id"])
    assert entry["state"] == "finished"
    assert entry["threads"] + entry["lost_names"] + entry["lost"] >= 20_000


def test_the_newest_four_are_kept(captures, finish):
    ids = []
    for _ in range(5):
        ids.append(captures.begin(TraceRequest(seconds=0.1), "me")["id"])
        finish(captures, ids[-1])
        time.sleep(1.0)  # ids sort by the second
    assert traces_of(captures) == sorted(f"{each}.pftrace" for each in ids[1:])


@pytest.mark.usefixtures("bpf")
def test_the_agents_process_imports_no_numpy_and_does_not_grow(tmp_path, spawn):
    spawn(STORM)
    process = agent(tmp_path, {"seconds": 2.0})
    helper = next(int(line) for line in process.stdout if line.strip().isdecimal())
    before = resident(process.pid)
    while is_alive(helper):
        time.sleep(0.05)
    time.sleep(0.2)
    libraries = Path(f"/proc/{process.pid}/maps").read_text() if is_alive(process.pid) else ""
    after = resident(process.pid) or before
    process.communicate(timeout=PATIENCE_S)
    assert "numpy" not in libraries
    assert after - before < MIB


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


def test_what_the_agent_saw_while_it_recorded_is_in_the_trace(captures, finish):
    captures.tell(make_snapshot())
    begun = captures.begin(TraceRequest(seconds=1.5), "me")
    captures.tell(make_snapshot())
    entry = finish(captures, begun["id"])
    assert b"Temper" in captures.trace(entry["id"]).read_bytes()


def test_without_a_state_directory_a_capture_is_refused(tmp_path):
    captures = Captures(MadeContext(with_processes=True), lock_directory=tmp_path / "run")
    with pytest.raises(MachineError):
        captures.begin(TraceRequest(), "me")
    assert captures.begin is not None


def mounted(folder, size):
    """Return the words that run a command with a small file system at *folder*."""
    script = f'mount -t tmpfs -o size={size} none "{folder}" && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", script, "sh")


def resident(pid):
    """Return the resident bytes of a process, 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
