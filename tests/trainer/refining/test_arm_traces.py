"""The kernel traces of a run's arms: real captures of a real pod, where BPF is allowed."""

import hashlib
import shutil
import signal
import subprocess
from contextlib import contextmanager

import pytest

from temper_core.bpf.access import probe
from temper_plugin_trainer.refining.door_traces import MOST_BYTES
from tests.core.agent.running_agent import RunningAgent
from tests.core.observe.conftest import made_cgroup
from tests.own_host import NO_OWN_HOSTS, has_own_hosts
from tests.patience import PATIENCE_S
from tests.trainer.refining.test_train_run import FOUND, INVALID, TEMPER, TrainRun, eventually

# As in conftest.py, a busy machine is no finding.
WORKLOAD = """
[[workloads]]
name = "spin"
cgroup = "{name}"
tier = "critical"
cpu_request = "2"

[plugins.linter]
starved_s = 3600.0
contended_cpu = 10000.0
"""
ENTER = 'echo $$ > "$0/cgroup.procs" && while :; do sleep 0.01; done'
OPTIONS = ("--rehearse", "--trials", 1)
ARMS = "tier-alone", "profile"
pytestmark = pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS)


@pytest.fixture(scope="module")
def program():
    """Run a program in a cgroup of its own, and return the cgroup's name."""
    with made_cgroup() as (name, folder):
        started = subprocess.Popen(["sh", "-c", ENTER, str(folder)])
        eventually(lambda: (folder / "cgroup.procs").read_text().split())
        yield name
        started.kill()
        started.wait()


@contextmanager
def running_agent(folder, program, settings=""):
    """Run an agent that watches the program, with more settings."""
    agent = RunningAgent(folder, settings=WORKLOAD.format(name=program) + settings, own_run=True)
    try:
        agent.wait_for(lambda: (agent.observation() or {}).get("pods"), "pods")
        yield agent
    finally:
        agent.stop()


@pytest.fixture(scope="module")
def agent(program, tmp_path_factory):
    with running_agent(tmp_path_factory.mktemp("agent"), program) as agent:
        yield agent


@pytest.fixture(scope="module")
def traced(agent, tmp_path_factory):
    """Return a run with traces that has ended."""
    require_bpf()
    train = TrainRun(agent, tmp_path_factory.mktemp("traced"), is_traced=True)
    return train, train.run(*OPTIONS)


@pytest.fixture(scope="module")
def untraced(agent, tmp_path_factory):
    """Return a run without traces that has ended."""
    train = TrainRun(agent, tmp_path_factory.mktemp("untraced"))
    return train, train.run(*OPTIONS)


@pytest.fixture
def measured(untraced, tmp_path):
    """Return a run to be made with traces, of which all measurements are there."""
    train = TrainRun(untraced[0].agent, tmp_path, is_traced=True)
    train.record.mkdir(parents=True)
    shutil.copy(untraced[0].record / "journal.jsonl", train.record)
    return train


def section_of(train):
    """Return the lines of the report about traces."""
    text = (train.record / "REPORT.md").read_text()
    return text.partition("## Traces")[2].partition("## ")[0].strip().splitlines()


def require_bpf():
    access = probe()
    if not access.is_allowed:
        pytest.skip(f"BPF is refused here: {access.reason}")


def test_a_record_has_a_bounded_trace_of_both_arms_that_can_be_read(traced):
    train, done = traced

    assert done.returncode == FOUND, done.stderr
    lines = section_of(train)
    for arm, line in zip(ARMS, lines, strict=True):
        path = train.record / "traces" / f"{arm}.pftrace"
        content = path.read_bytes()
        analyzed = subprocess.run(
            [TEMPER, "trace", "analyze", str(path)], check=True, capture_output=True, text=True
        ).stdout
        assert 0 < len(content) <= MOST_BYTES
        assert hashlib.sha256(content).hexdigest() in line
        assert "sleep" in analyzed
    assert train.agent.get("/traces").json()["traces"] == []
    assert train.trials() == []


def test_the_runs_that_are_traced_are_no_measurements(traced, untraced):
    assert len(traced[0].journal) == len(untraced[0].journal) > 1


def test_a_run_without_traces_says_that_they_were_not_asked_for(untraced):
    train, _ = untraced

    assert section_of(train) == ["- all arms: no trace. --no-trace was given."]
    assert not (train.record / "traces").exists()


def test_a_record_says_why_an_agent_without_the_tracer_has_no_trace(program, tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    with running_agent(folder, program, '[plugin_host]\nallow = ["trainer"]\n') as agent:
        train = TrainRun(agent, tmp_path, is_traced=True)

        done = train.run(*OPTIONS)

    assert done.returncode == FOUND, done.stderr
    assert [line.partition(". ")[0] for line in section_of(train)] == [
        f"- {arm}: no trace" for arm in ARMS
    ]
    assert all("/traces" in line for line in section_of(train))


def test_a_record_says_who_holds_the_capture_of_the_node(agent, measured):
    require_bpf()
    agent.client.post("/flight-recorder", json={"seconds": 600}).raise_for_status()
    try:
        done = measured.run(*OPTIONS)
        state = agent.get("/flight-recorder").json()["state"]
    finally:
        agent.client.delete("/flight-recorder").raise_for_status()

    assert done.returncode == FOUND, done.stderr
    assert all("no trace. " in line and "flight" in line for line in section_of(measured))
    assert state == "recording"


def test_an_interruption_ends_the_capture_and_the_same_command_makes_it_anew(agent, measured):
    require_bpf()
    run = measured.start(*OPTIONS)
    eventually(lambda: agent.get("/traces").json()["traces"])
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=PATIENCE_S)

    assert run.returncode == INVALID
    assert agent.get("/traces").json()["traces"] == []
    assert measured.trials() == []
    assert measured.run(*OPTIONS).returncode == FOUND
    assert {path.stem for path in (measured.record / "traces").iterdir()} == {*ARMS}
