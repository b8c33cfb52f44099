"""Captures while the state disk hangs: no look waits for it, and a trace is written afterwards."""

import json
import threading

import pytest

from temper_core import (
    CheckState,
    Instrument,
    MachineError,
    Severity,
    SilentDiskError,
    Violation,
    hookimpl,
)
from temper_core.events.event_log import EventLog
from temper_core.instruments.context import AgentParts
from temper_core.instruments.instruments import Instruments
from temper_core.instruments.lookup import PlanLookup
from temper_core.instruments.state_directory import InstrumentDirectory
from temper_core.plugin_host import PluginHost
from temper_core.profiles.trials import TrialBook
from temper_core.settings.models import PluginHostSettings, Settings
from temper_core.testing import make_machine, make_snapshot
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.flight_request import FlightRequest
from temper_plugin_tracer.capture.instrument import TraceCaptures
from temper_plugin_tracer.capture.request import TraceRequest
from temper_plugin_tracer.capture.store import END, NODE
from tests.control_plane.cluster import wait_until
from tests.patience import PATIENCE_S

FLIGHT = FlightRequest(violations=("rt_hog",))
SILENT = "the disk of the traces has not answered since 20"


class Disk(InstrumentDirectory):
    """A state directory whose disk hangs or refuses when it is told to."""

    def __init__(self, *place):
        super().__init__(*place)
        self.answers, self.is_asked = threading.Event(), threading.Event()
        self.answers.set()
        self.refuses = False

    def hang(self):
        self.is_asked.clear()
        self.answers.clear()

    def write(self, name, content):
        self.is_asked.set()
        if not self.answers.wait(PATIENCE_S):
            raise MachineError("nobody let the disk answer")
        if self.refuses:
            raise MachineError("the disk is full")
        return super().write(name, content)


class Helper:
    """A helper process that records until it is stopped."""

    pid = 1

    def __init__(self):
        self._is_running = True

    def is_running(self):
        return self._is_running

    def stop(self):
        self._is_running = False

    def result(self, timeout_s=0.0):
        return {"unkept": f"its {timeout_s} s are over"}


class Helpers:
    """Starts such helpers."""

    def start(self, *_):
        self.last = Helper()
        return self.last

    def stop_all(self, _owner):
        pass


class NoBackends:
    """Tries no backend."""

    def checks(self):
        return ()


class Plugin:
    """A plugin with the instrument that *opening* opens."""

    def __init__(self, opening):
        self._opening = opening

    @hookimpl
    def temper_instruments(self):
        return [Instrument("trace", self._opening)]


class Agent:
    """The instruments of an agent whose plugins have a short deadline."""

    def __init__(self, folder, patches):
        self._patches = patches
        self.disk = Disk(folder / "temper", "trace", 1_000_000)
        self.helpers = Helpers()
        self._run = folder / "run"
        self._host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=2.0)))
        self._host.add(Plugin(self._open), "tracer")
        parts = AgentParts(
            node="node-1",
            machine=make_machine(),
            lookup=PlanLookup(lambda: None),
            safe_mode=None,
            helpers=self.helpers,
            trials=TrialBook(),
            recorder=EventLog(),
            state=lambda _name, _limit: self.disk,
        )
        gathered = self._host.gather("temper_instruments", Instrument)
        self.instruments = Instruments(self._host, gathered, parts)
        self.instruments.open()

    def _open(self, context):
        self.captures = Captures(context, lock_directory=self._run)
        return TraceCaptures(self.captures, NoBackends())

    def hang(self, answer_s=0.1):
        """Let the disk hang, and whoever asks it wait for so long."""
        self._patches.setattr("temper_core.disk_thread.ANSWER_S", answer_s)
        self.disk.hang()

    @property
    def why_lost(self):
        return self._host.why_lost("tracer", "instrument trace, tell")

    def look(self, *names):
        """Let one window pass, in which these invariants are violated. Return the defects."""
        violations = tuple(
            Violation(name, Severity.WARNING, f"a {name}", "", "", {}, 0.0) for name in names
        )
        made = make_snapshot(violations=violations, invariants=("rt_hog",))
        snapshot = self.instruments.with_sections(made)
        self.instruments.tell(snapshot)
        return snapshot.defects

    def check(self):
        return next(check for _, check in self.instruments.checks())

    def file(self, capture, suffix):
        """Return a file of a capture as soon as it is there."""
        path = self.disk.path / f"{capture}{suffix}"
        wait_until(path.exists, f"the file {path.name}", PATIENCE_S)
        return path.read_text()


@pytest.fixture
def agent(tmp_path, monkeypatch):
    made = Agent(tmp_path, monkeypatch)
    yield made
    made.disk.answers.set()
    made.instruments.close()


def begin(agent, request):
    return agent.captures.begin(request, "me")["id"]


def test_a_violation_while_the_disk_hangs_is_written_once_it_answers(agent):
    capture = begin(agent, FLIGHT)
    agent.look()
    agent.hang()

    agent.look("rt_hog")
    agent.look("rt_hog")
    agent.disk.answers.set()

    assert agent.file(capture, END) == "violation\nrt_hog: a rt_hog"
    assert agent.why_lost == ""


def test_the_looks_of_a_capture_go_on_while_the_disk_hangs(agent):
    capture = begin(agent, TraceRequest())
    agent.hang()

    for _ in range(3):
        agent.look()
    agent.disk.answers.set()

    def has_all():
        agent.look()
        return len(json.loads(agent.file(capture, NODE))["looks"]) > 3

    wait_until(has_all, "a note of all looks", PATIENCE_S)
    assert agent.why_lost == ""


def test_the_end_of_a_capture_removes_its_notes_without_a_look_that_waits(agent):
    capture = begin(agent, TraceRequest())
    agent.hang()
    agent.look()
    agent.disk.is_asked.wait(PATIENCE_S)
    agent.helpers.last.stop()

    agent.look()
    during = (agent.disk.path / f"{capture}{NODE}").exists()
    agent.disk.answers.set()

    assert (during, agent.why_lost) == (True, "")
    wait_until(lambda: not list(agent.disk.path.iterdir()), "the removal", PATIENCE_S)


def test_a_disk_that_hangs_is_told_until_it_answers(agent):
    begin(agent, FLIGHT)
    before = agent.check()
    agent.hang()
    agent.look("rt_hog")
    wait_until(lambda: agent.check().state is CheckState.WARNING, "the warning", PATIENCE_S)
    during, defects = agent.check(), agent.look("rt_hog")

    agent.disk.answers.set()
    wait_until(lambda: agent.check().state is CheckState.OK, "the end of it", PATIENCE_S)

    assert before.state is CheckState.OK
    assert during.detail.startswith(SILENT)
    assert [each for each in defects if each.startswith(f"instrument trace: {SILENT}")]
    assert agent.look("rt_hog") == ()


def test_a_violation_that_a_full_disk_refuses_is_written_once_there_is_room(agent):
    capture = begin(agent, FLIGHT)
    agent.look()
    agent.disk.refuses = True
    agent.look("rt_hog")
    wait_until(lambda: agent.check().detail == "the disk is full", "the warning", PATIENCE_S)
    agent.disk.refuses = False

    agent.look("rt_hog")

    assert agent.file(capture, END).startswith("violation")
    assert agent.why_lost == ""


def test_a_request_that_waits_for_the_disk_holds_up_no_look(agent):
    agent.look()
    agent.hang(answer_s=PATIENCE_S)
    asking = threading.Thread(target=begin, args=(agent, FLIGHT))
    asking.start()
    agent.disk.is_asked.wait(PATIENCE_S)

    agent.look()
    agent.disk.answers.set()
    asking.join(PATIENCE_S)

    assert agent.why_lost == ""
    assert agent.captures.running.by == "me"


def test_a_dump_that_the_disk_does_not_take_is_refused_and_may_be_asked_for_again(agent):
    capture = begin(agent, FLIGHT)
    agent.hang()
    with pytest.raises(SilentDiskError):
        agent.captures.end(capture, "me")
    agent.disk.answers.set()

    def is_taken():
        try:
            return agent.captures.end(capture, "me")["state"] == "writing"
        except SilentDiskError:
            return False

    wait_until(is_taken, "the second dump", PATIENCE_S)
    assert agent.file(capture, END) == "asked\nme"


def test_a_capture_that_could_not_begin_leaves_nothing(agent):
    agent.hang()
    with pytest.raises(SilentDiskError):
        begin(agent, FLIGHT)

    agent.disk.answers.set()

    def begun():
        try:
            return begin(agent, FLIGHT)
        except SilentDiskError:
            return ""

    capture = wait_until(begun, "a capture", PATIENCE_S)
    assert [path.name for path in agent.disk.path.iterdir()] == [f"{capture}{NODE}"]


def test_an_agent_that_ends_does_not_wait_for_the_disk(agent):
    begin(agent, FLIGHT)
    agent.hang()
    agent.look("rt_hog")

    agent.instruments.close()

    assert agent.captures.running is None


def test_a_recorder_that_is_no_longer_told_of_violations_says_so(agent):
    begin(agent, FLIGHT)

    agent.instruments.let_go()

    told = "no violation ends the flight recorder any more; restart the agent"
    assert (agent.check().state, agent.check().detail) == (CheckState.WARNING, told)
    assert f"instrument trace: {told}" in agent.look()
