import threading
import time
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from temper_core.errors import MachineError
from temper_plugin_console import top
from temper_plugin_console.top.cpu_times import busy_between, read_cpu_times
from temper_plugin_console.top.looks import FEW, MANY, ObservationPoller, news_in, threads_for
from temper_plugin_console.top.view import View
from tests.patience import PATIENCE_S


class Agent:
    """Answers with a number that counts up, or raises what it is told to."""

    def __init__(self):
        self.asked = []
        self.error = None
        self.held = threading.Event()
        self.held.set()

    def __call__(self, threads):
        self.asked.append(threads)
        assert self.held.wait(PATIENCE_S)
        if self.error:
            raise self.error
        return {"generation": len(self.asked), "machine": {"cpus": len(read_cpu_times())}}


@pytest.fixture
def agent():
    return Agent()


@pytest.fixture
def rung():
    return threading.Event()


@pytest.fixture
def looks(agent, rung):
    looks = ObservationPoller.begin(agent, FEW)
    looks.call_back(rung.set)
    return looks


def test_a_look_does_not_wait_for_the_agent(agent, looks, rung):
    agent.held.clear()
    looks.start(FEW)
    was_early = looks.take_answer()
    agent.held.set()

    assert rung.wait(PATIENCE_S)
    assert not was_early
    wait_for_answer(looks)
    assert looks.seen.document["generation"] == 2


def wait_for_answer(looks):
    deadline = time.monotonic() + PATIENCE_S
    while not looks.take_answer():
        assert time.monotonic() < deadline


def test_one_look_is_under_way_at_a_time(agent, looks):
    agent.held.clear()
    looks.start(FEW)
    looks.start(MANY)
    agent.held.set()
    wait_for_answer(looks)

    assert agent.asked == [FEW, FEW]


def test_an_agent_that_goes_away_leaves_what_was_seen_and_why_there_is_no_more(agent, looks):
    agent.error = MachineError("no agent answers")

    looks.look()

    assert looks.seen.trouble == "no agent answers"
    assert looks.seen.document["generation"] == 1


def test_at_the_start_there_has_to_be_an_agent(agent):
    agent.error = MachineError("no agent answers")

    with pytest.raises(MachineError):
        ObservationPoller.begin(agent, FEW)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bug_ends_the_looking_instead_of_hanging(agent, looks):
    agent.error = AttributeError("a bug")
    looks.start(FEW)

    with pytest.raises(RuntimeError):
        wait_for_answer(looks)


def test_more_threads_are_asked_for_at_once(looks):
    assert looks.due_in(60.0, FEW) > 50
    assert looks.due_in(60.0, MANY) == 0


@pytest.mark.parametrize(
    ("view", "height", "threads"),
    [
        (View(), 24, FEW),
        (View(), 120, 120),
        (View(sort="wait"), 24, MANY),
        (View(kept="web"), 24, MANY),
        (View(first=3), 24, MANY),
        (View(pane="pods", sort="wait"), 24, FEW),
    ],
)
def test_no_more_threads_are_asked_for_than_the_view_needs(view, height, threads):
    assert threads_for(view, height) == threads


def ago(seconds):
    return datetime.fromtimestamp(time.time() - seconds, UTC).isoformat()


@pytest.mark.parametrize(
    ("document", "least", "most"),
    [
        ({"at": ago(1), "observing": {"period_s": 9000.0}}, 5000, 9000),
        ({"at": ago(-7200), "overhead": {"period_s": 5.0}}, 5, 5),
        ({"at": ago(60), "overhead": {"period_s": 5.0}}, 0, 0),
        ({"at": "soon", "overhead": {"period_s": 5.0}}, 0, 0),
        ({"at": "0001-01-01", "overhead": {"period_s": 5.0}}, 0, 0),
        ({"at": ago(0), "overhead": {"period_s": -5.0}}, 0, 0),
        ({}, 0, 0),
    ],
)
def test_there_are_no_news_before_the_agent_looks_again(document, least, most):
    assert least <= news_in(document) <= most


def test_the_kernel_counts_how_busy_the_cpus_of_this_machine_are(looks):
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass

    busy = looks.look().busy

    assert set(busy) <= set(read_cpu_times())
    assert max(busy.values()) > 0
    assert all(0 <= share <= 1 for share in busy.values())


def test_a_machine_of_other_cpus_is_not_taken_for_the_agents(looks, agent, monkeypatch):
    monkeypatch.setattr(Agent, "__call__", lambda _, __: {"machine": {"cpus": 4096}})

    assert looks.look().busy == {}
    assert agent.asked == [FEW]


@pytest.mark.parametrize("content", ["", "cpu0\n", "cpu0 1 2 x 4 5 6 7\nintr 5\n", "\n\n", None])
def test_a_file_of_other_content_tells_nothing(tmp_path, content):
    if content is not None:
        (tmp_path / "stat").write_text(content)

    assert read_cpu_times(str(tmp_path)) == {}


def test_busy_is_what_is_neither_idle_nor_waiting_nor_stolen(tmp_path):
    (tmp_path / "stat").write_text("cpu  9 9 9 9 9 9 9 9 9 9\ncpu3 10 20 30 100 40 5 6 7 3 3\n")

    after = read_cpu_times(str(tmp_path))

    assert after == {3: (71, 218)}
    assert busy_between({3: (21, 118)}, after) == {3: 0.5}
    assert busy_between(after, after) == {}
    assert busy_between({}, after) == {}


@pytest.mark.parametrize("interval", ["nan", "inf", "0", "soon"])
def test_an_interval_that_nobody_can_wait_for_is_refused(interval):
    told = CliRunner().invoke(top.command, ["--once", "--interval", interval])

    assert told.exit_code == 2
    assert "--interval" in told.output
