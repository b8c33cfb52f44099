"""Faults in the middle of a capture: each has a clear outcome, and leaves nothing behind."""

import errno
import time

import pytest

from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.request import TraceRequest
from tests.patience import PATIENCE_S
from tests.tracer.capture.agent_process import agent, helper_of, outcome_of
from tests.tracer.capture.conftest import (
    LONG_S,
    MIB,
    STORM,
    files_of,
    is_alive,
    kill,
)

HIDE_BTF = 'mount -t tmpfs tmpfs /sys/kernel/btf && exec "$@"'


def test_nothing_is_left_of_a_capture_whose_helper_is_killed(captures, context, finish):
    begun = captures.begin(TraceRequest(seconds=LONG_S), "me")
    time.sleep(1.0)
    kill(captures._running.helper.pid)
    entry = finish(captures, begun["id"])
    assert entry["state"] == "failed"
    assert "SIGKILL" in entry["reason"] or "signal" in entry["reason"]
    assert files_of(captures) == []
    assert context.recorded[-1][0] == "trace_failed"


def test_a_failed_capture_is_deleted_from_the_list(captures, context, finish):
    begun = captures.begin(TraceRequest(seconds=LONG_S), "me")
    kill(captures.running.helper.pid)
    finish(captures, begun["id"])

    assert captures.delete(begun["id"], "me")

    assert captures.documents() == []
    assert context.recorded[-1] == ("trace_deleted", begun["id"], "asked by me")
    assert not captures.delete(begun["id"], "me")


@pytest.mark.usefixtures("bpf")
def test_nothing_is_left_of_a_capture_whose_agent_is_killed(context, tmp_path):
    process = agent(tmp_path, seconds=LONG_S)
    helper = helper_of(process)
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
    outcome = outcome_of(agent(tmp_path, seconds=1.0, under=mounted(tmp_path, "4m")))
    assert outcome["entry"]["state"] == "failed"
    reason = outcome["entry"]["reason"]
    assert "4 MiB free" in reason or "3 MiB free" in reason
    assert outcome["files"] == []


@pytest.mark.usefixtures("bpf")
def test_a_disk_that_fills_ends_a_capture_which_is_kept(tmp_path, spawn):
    spawn(STORM)
    under = mounted(tmp_path, "3m")
    outcome = outcome_of(agent(tmp_path, seconds=LONG_S, bytes=2 * MIB, under=under))
    assert outcome["entry"]["state"] == "finished", outcome
    assert outcome["entry"]["ended_by"] == "disk"
    assert any(name.endswith(".pftrace") for name in outcome["files"])


@pytest.mark.usefixtures("bpf")
@pytest.mark.parametrize("capability", ["bpf", "perfmon"])
def test_without_a_capability_nothing_is_captured_and_the_reason_is_told(tmp_path, capability):
    # CAP_SYS_ADMIN has both of them.
    dropped = f"--bounding-set=-{capability},-sys_admin"
    under = ("setpriv", dropped, "--inh-caps=-all")
    outcome = outcome_of(agent(tmp_path, seconds=1.0, under=under))
    assert outcome["entry"]["state"] == "failed"
    assert "no way to record works here: bpf:" in outcome["entry"]["reason"]
    assert f"CAP_{capability.upper()}" in outcome["entry"]["reason"]
    assert outcome["files"] == []


@pytest.mark.usefixtures("bpf")
def test_a_kernel_without_type_information_is_told_as_such(tmp_path):
    # No kernel here is without: the refusal is a filter's, and the file is hidden.
    under = ("unshare", "--mount", "sh", "-c", HIDE_BTF, "sh")
    process = agent(tmp_path, seconds=1.0, under=under, refusing=(errno.EINVAL,))
    outcome = outcome_of(process)
    assert outcome["entry"]["state"] == "failed"
    assert "bpf: the kernel has no type information" in outcome["entry"]["reason"]
    assert outcome["files"] == []


@pytest.mark.usefixtures("bpf")
def test_where_only_the_file_of_the_types_is_hidden_a_trace_is_captured(tmp_path):
    under = ("unshare", "--mount", "sh", "-c", HIDE_BTF, "sh")
    outcome = outcome_of(agent(tmp_path, seconds=0.3, under=under))
    assert (outcome["entry"]["state"], outcome["entry"]["backend"]) == ("finished", "bpf")


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


@pytest.mark.usefixtures("bpf")
def test_the_agents_process_imports_no_numpy_and_does_not_grow(tmp_path, spawn):
    spawn(STORM)
    outcome = outcome_of(agent(tmp_path, seconds=2.0))
    assert outcome["entry"]["state"] == "finished"
    assert outcome["entry"]["events"] > 0
    assert not outcome["has_numpy"]
    assert outcome["grown_bytes"] < MIB


def mounted(folder, size):
    """Return the words that run a command with a small file system at *folder*."""
    script = f'mount -t tmpfs -o size={size} none "{folder}" && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", script, "sh")
