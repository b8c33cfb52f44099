"""``temper trace`` against a real agent on a host of the test's own."""

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from temper_core import ask_agent, load_settings
from temper_plugin_tracer.trace.reading import PERFETTO
from tests.own_host import ENVIRONMENT, TEMPER, until
from tests.patience import PATIENCE_S
from tests.tracer.capture.conftest import agent_on, own_host

pytestmark = pytest.mark.usefixtures("bpf")


@pytest.fixture(scope="module")
def lasting(bpf, tmp_path_factory):
    """A host and the settings of its agent, for tests that change nothing there."""
    del bpf
    with own_host(tmp_path_factory.mktemp("lasting")) as host, agent_on(host) as settings:
        yield host, settings


def trace(host, settings, *words):
    """Run ``temper trace``, and return what it has printed."""
    run = host.temper("trace", *words, "--settings", str(settings))
    assert run.returncode == 0, run.stderr
    return run.stdout


def asked(settings, path):
    """Ask the agent itself: a start of the command takes longer than the answer."""
    return ask_agent(path, settings=load_settings(settings))


def until_state(settings, state):
    """Wait until the agent has a trace in this state."""
    until(
        lambda: [row for row in asked(settings, "/traces")["traces"] if row["state"] == state],
        settings.with_name("log"),
    )


def files_mapped_by_agent(host):
    return host.shell(f"cat /proc/{host.pid_of_agent()}/maps")


def test_a_trace_is_captured_listed_fetched_and_deleted(host, settings, tmp_path):
    out = tmp_path / "x.pftrace"
    told = trace(host, settings, "capture", "--seconds", "0.5", "--out", str(out))
    assert "of the whole node" in told
    mapped = files_mapped_by_agent(host)
    assert "numpy" not in mapped
    assert out.stat().st_mode & 0o777 == 0o600
    [entry] = json.loads(trace(host, settings, "list", "--output", "json"))
    assert out.stat().st_size == entry["bytes"]
    assert entry["id"] in trace(host, settings, "list")
    assert_offset_beyond_the_end_is_refused(host, settings, entry)
    copy = tmp_path / "copy.pftrace"
    trace(host, settings, "fetch", entry["id"], "--out", str(copy))
    assert copy.read_bytes() == out.read_bytes()
    assert "is deleted" in trace(host, settings, "delete", entry["id"])
    assert json.loads(trace(host, settings, "list", "--output", "json")) == []
    kinds = host.temper("events", "--settings", str(settings), "--output", "json").stdout
    assert {"trace_begun", "trace_finished", "trace_deleted"} <= set(
        kinds.replace('"', " ").split()
    )
    assert "trace backend bpf" in host.temper("doctor", "--settings", str(settings)).stdout


def assert_offset_beyond_the_end_is_refused(host, settings, entry):
    for offset in (entry["bytes"] + 1, 10**20):
        words = ("fetch", entry["id"], "--out", "-", "--offset", str(offset))
        run = host.temper("trace", *words, "--settings", str(settings))
        assert (run.returncode, run.stdout) == (2, "")
        where = f"--offset {offset} is beyond the end of the trace {entry['id']}"
        assert run.stderr == f"temper: {where}, which has {entry['bytes']} bytes\n"


def test_the_flight_recorder_is_started_shown_and_written(host, settings):
    assert "is off" in trace(host, settings, "flight-recorder", "status")
    assert "flight recorder is off" in doctor(host, settings)
    told = trace(host, settings, "flight-recorder", "start", "--violation", "smt_collision")
    assert "the flight recorder runs" in told
    until(lambda: asked(settings, "/flight-recorder").get("events"), settings.with_name("log"))
    words = ("flight-recorder", "status", "--output", "json")
    assert json.loads(trace(host, settings, *words))["events"] > 0
    told = trace(host, settings, "flight-recorder", "status")
    assert "waits for  smt_collision, or" in told
    assert "at a violation of smt_collision" in doctor(host, settings)
    until(lambda: flight_section(settings).get("is_on"), settings.with_name("log"))
    shown = host.temper("observe", "--settings", str(settings), "--output", "json").stdout
    assert json.loads(shown)["sections"]["trace"]["flight_recorder"]["is_on"]
    refused = host.temper("trace", "capture", "--settings", str(settings))
    assert refused.returncode == 2
    assert "the flight recorder runs for socket uid" in refused.stderr
    assert "is being written" in trace(host, settings, "flight-recorder", "dump")
    until_state(settings, "finished")
    assert "finished" in trace(host, settings, "list")
    run = host.temper("trace", "flight-recorder", "stop", "--settings", str(settings))
    assert run.returncode == 2
    assert "the flight recorder is off" in run.stderr


def test_the_flight_recorder_is_stopped(host, settings):
    trace(host, settings, "flight-recorder", "start")
    assert "is off" in trace(host, settings, "flight-recorder", "stop")
    assert json.loads(trace(host, settings, "list", "--output", "json")) == []


def flight_section(settings):
    """Return the flight recorder's part of ``/observe``, empty while it has none."""
    sections = asked(settings, "/observe").get("sections", {})
    return sections.get("trace", {}).get("flight_recorder", {})


def doctor(host, settings):
    """Return what ``temper doctor`` prints, on one line."""
    return " ".join(host.temper("doctor", "--settings", str(settings)).stdout.split())


def test_ctrl_c_ends_a_capture_and_keeps_what_there_is(host, settings, tmp_path):
    out = tmp_path / "x.pftrace"
    words = ("trace", "capture", "--seconds", "30", "--out", str(out), "--settings", str(settings))
    running = subprocess.Popen(
        host.command(TEMPER, *words), stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    until_state(settings, "recording")
    assert "recording" in trace(host, settings, "list")
    time.sleep(1.0)
    host.shell("kill -INT $(pgrep -f '[t]emper trace capture')")
    told, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0
    assert "ended by asked" in told
    assert out.stat().st_size > 0


def test_nothing_is_left_of_a_capture_whose_agent_is_killed(host, settings):
    words = ("trace", "capture", "--seconds", "30", "--settings", str(settings))
    running = subprocess.Popen(
        host.command(TEMPER, *words), stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    until_state(settings, "recording")
    time.sleep(1.0)
    pid = host.pid_of_agent()
    host.shell(f"kill -{signal.SIGKILL.value} {pid}")
    _, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 3
    assert "no agent answers" in errors
    directory = settings.parent / "state"
    assert not list(Path(directory).rglob("*.pftrace"))
    restored = host.temper("restore", "--dry-run", "--settings", str(settings))
    assert restored.returncode == 0, restored.stdout + restored.stderr
    again = host.start(settings)
    assert json.loads(trace(host, settings, "list", "--output", "json")) == []
    assert not [path for path in Path(directory).rglob("*") if path.suffix in {".node", ".partial"}]
    again.terminate()
    again.wait(timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("capture", "--pod", "shop/none"), "is no pod of this node"),
        (("capture", "--cpus", "x"), "is not a list of CPUs"),
        (("fetch", "none"), "the agent has no trace"),
        (("delete", "none"), "the agent has no trace"),
        (("flight-recorder", "dump"), "the flight recorder is off"),
    ],
)
def test_what_makes_no_sense_is_refused(lasting, words, message):
    host, settings = lasting
    run = host.temper("trace", *words, "--settings", str(settings))
    assert run.returncode == 2
    assert message in run.stderr


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("none/x.pftrace", "none/x.pftrace: No such file or directory"),
        ("file/x.pftrace", "file/x.pftrace: Not a directory"),
        ("link", "link: is a link; name the file itself"),
        ("link-to-directory", "is a directory"),
        (".", "is a directory"),
    ],
)
def test_a_trace_that_cannot_be_written_is_not_recorded(lasting, tmp_path, out, message):
    host, settings = lasting
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "link-to-directory").symlink_to(tmp_path)
    words = ("trace", "capture", "--out", str(tmp_path / out), "--settings", str(settings))
    run = host.temper(*words)
    assert run.returncode == 2
    assert message in run.stderr.splitlines()[-1]
    assert asked(settings, "/traces")["traces"] == []


@pytest.mark.parametrize("words", [("--output", "json"), ()])
def test_a_trace_is_not_recorded_for_a_terminal_or_beside_json(lasting, words):
    host, settings = lasting
    command = ("trace", "capture", "--out", "-", *words, "--settings", str(settings))
    terminal, stdout = pty.openpty()
    run = subprocess.run(
        host.command(TEMPER, *command),
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        text=True,
        env=ENVIRONMENT,
    )
    for descriptor in (terminal, stdout):
        os.close(descriptor)
    assert run.returncode == 2
    assert ("a document of --output" if words else "not for a terminal") in run.stderr
    assert asked(settings, "/traces")["traces"] == []


def test_a_captured_trace_is_printed(host, settings):
    words = ("trace", "capture", "--seconds", "0.5", "--out", "-", "--settings", str(settings))
    run = subprocess.run(
        host.command(TEMPER, *words), capture_output=True, check=True, env=ENVIRONMENT
    )
    [entry] = asked(settings, "/traces")["traces"]
    assert len(run.stdout) == entry["bytes"]
    assert run.stdout.startswith(PERFETTO)
    assert b"of the whole node" in run.stderr


def test_a_trace_that_cannot_be_copied_is_kept_and_the_way_to_it_is_told(host, settings):
    words = ("trace", "capture", "--seconds", "0.5", "--out", "/dev/full")
    run = host.temper(*words, "--settings", str(settings))
    [entry] = asked(settings, "/traces")["traces"]
    assert run.returncode == 2
    assert "/dev/full: No space left on device; the agent keeps the trace" in run.stderr
    assert f"temper trace fetch {entry['id']} --out FILE --settings {settings}" in run.stderr


def test_a_capture_whose_client_is_killed_is_kept_by_the_agent(host, settings, tmp_path):
    out = tmp_path / "x.pftrace"
    words = ("capture", "--seconds", "10", "--out", str(out), "--settings", str(settings))
    running = subprocess.Popen(host.command(TEMPER, "trace", *words), env=ENVIRONMENT)
    until_state(settings, "recording")
    host.shell(f"kill -{signal.SIGKILL.value} $(pgrep -f '[t]emper trace capture')")
    running.wait(timeout=PATIENCE_S)
    until_state(settings, "finished")
    [entry] = json.loads(trace(host, settings, "list", "--output", "json"))
    assert entry["ended_by"] == "seconds"
    assert not list(tmp_path.glob("*.pftrace"))
    assert not list(tmp_path.glob(".*.partial"))
