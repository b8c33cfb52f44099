"""Agents side by side on one machine: any number that observe, and one that may enforce."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_core.client import ask_observation
from temper_core.errors import TemperError
from temper_core.settings import load
from temper_core.settings.models import OF_ITS_OWN

TEMPER = str(Path(sys.executable).with_name("temper"))
PATIENCE_S = 120
ON_A_KERNEL_WITH_SCHED_EXT = """
import sys
from pathlib import Path

from attrs import evolve

from temper_core.agent.assembly import assemble
from temper_core.agent.waker import LoopWaker
from temper_core.errors import TemperError
from temper_core.scheduler.host.roots import Roots
from temper_core.settings import load

settings, machine = load(Path(sys.argv[1])).settings, Path(sys.argv[2])
settings = evolve(settings, scheduler=evolve(settings.scheduler, enforce=sys.argv[3] == "enforce"))
roots = Roots(sys=machine / "sys", run=Path(settings.run_directory), node=machine / "node")
try:
    assemble(settings, LoopWaker(), roots).run()
except TemperError as error:
    sys.exit(f"temper: {error}")
"""
"""As the command does it, on a made machine; its engine is not there, so that none is started."""


class Agent:
    """An agent with directories of its own in *folder*."""

    def __init__(self, folder, command):
        folder.mkdir()
        self.path, self.log = folder / "agent.toml", folder / "log"
        self.path.write_text(
            f'run_directory = "{folder}/run"\nstate_directory = "{folder}/state"\n'
            f'[scheduler]\nengine = "{folder}/none"\nsteering_pin = "{folder}/bpf/temper/hints"\n'
            '[server]\nlisten = "127.0.0.1:0"\n[observe]\nperiod_s = 0.5\n'
        )
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command(self.path), stderr=log)

    def mode(self):
        """Return what it says of itself; empty where it says nothing yet."""
        try:
            return ask_observation(load(self.path).settings, top=1)["mode"]
        except TemperError:
            return ""

    def observed(self):
        """Wait until it has observed, and return its mode."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            if mode := self.mode():
                return mode
            time.sleep(0.1)
        raise AssertionError(self.log.read_text())

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def start(tmp_path):
    agents = []

    def launch(command):
        agents.append(Agent(tmp_path / f"agent-{len(agents)}", command))
        return agents[-1]

    yield launch
    for agent in agents:
        agent.process.kill()
        agent.process.wait()


@pytest.fixture
def machine(tmp_path):
    """A machine whose kernel has sched_ext."""
    folder = tmp_path / "machine"
    (folder / "sys/kernel/sched_ext").mkdir(parents=True)
    (folder / "sys/kernel/sched_ext/state").write_text("disabled\n")
    return folder


def on(machine, wish):
    script = [sys.executable, "-c", ON_A_KERNEL_WITH_SCHED_EXT]
    return lambda path: [*script, str(path), str(machine), wish]


def observing(path):
    return [TEMPER, "agent", "--observe-only", "--settings", str(path)]


def with_the_state_of(other):
    def command(path):
        own, others = path.with_name("state"), other.path.with_name("state")
        path.write_text(path.read_text().replace(str(own), str(others)))
        return observing(path)

    return command


def test_two_that_observe_run_side_by_side_and_end_clean(start, tmp_path):
    first, second = start(observing), start(observing)

    modes = [first.observed(), second.observed()]
    ends = [first.stop(), second.stop()]

    assert modes == ["observe_only", "observe_only"]
    assert ends == [0, 0]
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert left == [
        *("agent.toml", "agent.toml"),
        *("demand.sqlite", "demand.sqlite"),  # these and the events are kept over a restart
        *("events.jsonl", "events.jsonl"),
        *("log", "log"),
    ]


def test_of_two_that_may_enforce_the_second_is_refused_in_one_line(start, machine):
    first = start(on(machine, "enforce"))
    first.observed()

    second = start(on(machine, "enforce"))

    assert second.process.wait(PATIENCE_S) == 1
    [refusal] = [line for line in second.log.read_text().splitlines() if line.startswith("temper")]
    assert refusal == (
        "temper: another agent that may enforce runs on this node "
        f"(process {first.process.pid} holds {machine}/node/agent.lock); "
        f"stop it, or start this one with --observe-only and {OF_ITS_OWN}"
    )
    assert first.mode()


def test_a_second_agent_with_the_same_state_is_refused_in_one_line(start, tmp_path):
    first = start(observing)
    first.observed()

    second = start(with_the_state_of(first))

    assert second.process.wait(PATIENCE_S) == 3
    [refusal] = [line for line in second.log.read_text().splitlines() if line.startswith("temper")]
    assert refusal == (
        f"temper: another agent has its state in {tmp_path}/agent-0/state (process "
        f"{first.process.pid} holds {tmp_path}/agent-0/state/events.jsonl); "
        f"stop it, or start this one with {OF_ITS_OWN}"
    )
    assert first.mode() == "observe_only"


def test_the_state_of_an_agent_that_was_killed_is_taken_over(start):
    first = start(observing)
    first.observed()
    first.process.kill()
    first.process.wait()

    assert start(with_the_state_of(first)).observed() == "observe_only"


def test_a_state_that_cannot_be_written_keeps_no_agent_from_its_start(start):
    def with_a_file_in_its_place(path):
        path.with_name("state").write_text("")
        return observing(path)

    agent = start(with_a_file_in_its_place)

    assert agent.observed() == "observe_only"
    assert "events_not_written" in agent.log.read_text()


@pytest.mark.parametrize("order", [("enforce", "observe"), ("observe", "enforce")])
def test_one_that_observes_runs_beside_one_that_may_enforce(start, machine, order):
    agents = [start(on(machine, wish)) for wish in order]

    modes = dict(zip(order, (agent.observed() for agent in agents), strict=True))

    assert modes == {"enforce": "safe_mode", "observe": "observe_only"}
    assert (machine / "node/agent.lock").exists()


def test_what_an_engine_of_the_other_needs_is_left_to_it(start, machine, tmp_path):
    enforcing = start(on(machine, "enforce"))
    enforcing.observed()
    notes = tmp_path / "agent-1/run/engine-1.json"

    def with_notes(path):
        notes.parent.mkdir()
        notes.write_text("[]")
        return on(machine, "observe")(path)

    start(with_notes).observed()

    assert notes.exists()


def test_paths_that_are_not_given_are_below_the_directories(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(
        'run_directory = "/own/run"\nstate_directory = "/own/state"\n'
        '[safe_mode]\nstate = "/var/lib/temper/safe-mode-requests.json"\n'
    )

    found = load(path).settings

    assert found.server.socket == "/own/run/agent.sock"
    assert found.safe_mode.file == "/own/state/safe-mode"
    assert found.safe_mode.state == "/var/lib/temper/safe-mode-requests.json"
