"""The kernel traces of a run's arms: real captures of a real pod, where BPF is allowed."""

import hashlib
import signal
import subprocess

import pytest

from temper_core.bpf.access import probe
from temper_plugin_trainer.refining.door_traces import MOST_BYTES
from tests.core.agent.running_agent import RunningAgent
from tests.core.observe.conftest import cgroup
from tests.own_host import NO_OWN_HOSTS, has_own_hosts
from tests.patience import PATIENCE_S
from tests.trainer.refining.test_train_run import FOUND, INVALID, TEMPER, TrainRun, eventually

__all__ = ["cgroup"]

WORKLOAD = '[[workloads]]\nname = "spin"\ncgroup = "{name}"\ntier = "critical"\ncpu_request = "2"\n'
ENTER = 'echo $$ > "$0/cgroup.procs" && while :; do sleep 0.01; done'
OPTIONS = ("--rehearse", "--trials", 1)
ARMS = "tier-alone", "profile"
pytestmark = pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS)


@pytest.fixture
def program(cgroup):
    """Run a program in a cgroup of its own, and return the cgroup's name."""
    name, folder = cgroup
    started = subprocess.Popen(["sh", "-c", ENTER, str(folder)])
    eventually(lambda: (folder / "cgroup.procs").read_text().split())
    yield name
    started.kill()
    started.wait()


@pytest.fixture
def made_agent(program, tmp_path):
    """Return a function that starts an agent with more settings."""
    agents = []

    def make(settings=""):
        folder = tmp_path / "agent"
        folder.mkdir()
        given = WORKLOAD.format(name=program) + settings
        agents.append(RunningAgent(folder, settings=given, own_run=True))
        agents[0].wait_for(lambda: (agents[0].observation() or {}).get("pods"), "pods")
        return agents[0]

    yield make
    for agent in agents:
        agent.stop()


def section_of(train):
    """Return the lines of the report about traces."""
    text = (train.record / "REPORT.md").read_text()
    return text.partition("## Traces")[2].partition("## ")[0].strip().splitlines()


def require_bpf():
    access = probe()
    if not access.is_allowed:
        pytest.skip(f"BPF is refused here: {access.reason}")


def test_a_record_has_a_bounded_trace_of_both_arms_that_can_be_read(made_agent, tmp_path):
    require_bpf()
    train = TrainRun(made_agent(), tmp_path, is_traced=True)

    done = train.run(*OPTIONS)

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


def test_the_runs_that_are_traced_are_no_measurements(made_agent, tmp_path):
    train = TrainRun(made_agent(), tmp_path, is_traced=True)
    other = TrainRun(train.agent, tmp_path)

    train.run(*OPTIONS, "--workload", "traced")
    other.run(*OPTIONS, "--workload", "untraced")

    journals = [train.artifacts / name / "journal.jsonl" for name in ("traced", "untraced")]
    assert len({len(path.read_text().splitlines()) for path in journals}) == 1


def test_a_run_without_traces_says_that_they_were_not_asked_for(made_agent, tmp_path):
    train = TrainRun(made_agent(), tmp_path)

    train.run(*OPTIONS)

    assert section_of(train) == ["- all arms: no trace. --no-trace was given."]
    assert not (train.record / "traces").exists()


def test_a_record_says_why_an_agent_without_the_tracer_has_no_trace(made_agent, tmp_path):
    agent = made_agent('[plugin_host]\nallow = ["trainer"]\n')
    train = TrainRun(agent, tmp_path, is_traced=True)

    done = train.run(*OPTIONS)

    assert done.returncode == FOUND, done.stderr
    assert [line.partition(". ")[0] for line in section_of(train)] == [
        f"- {arm}: no trace" for arm in ARMS
    ]
    assert all("/traces" in line for line in section_of(train))


def test_a_record_says_who_holds_the_capture_of_the_node(made_agent, tmp_path):
    require_bpf()
    agent = made_agent()
    train = TrainRun(agent, tmp_path, is_traced=True)
    agent.client.post("/flight-recorder", json={"seconds": 600}).raise_for_status()

    done = train.run(*OPTIONS)

    assert done.returncode == FOUND, done.stderr
    assert all("no trace. " in line and "flight" in line for line in section_of(train))
    assert agent.get("/flight-recorder").json()["state"] == "recording"


def test_an_interruption_ends_the_capture_and_the_same_command_makes_it_anew(made_agent, tmp_path):
    require_bpf()
    agent = made_agent()
    train = TrainRun(agent, tmp_path, is_traced=True)
    run = train.start(*OPTIONS)
    eventually(lambda: agent.get("/traces").json()["traces"])
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=PATIENCE_S)

    assert run.returncode == INVALID
    assert agent.get("/traces").json()["traces"] == []
    assert train.trials() == []
    assert train.run(*OPTIONS).returncode == FOUND
    assert {path.stem for path in (train.record / "traces").iterdir()} == {*ARMS}
