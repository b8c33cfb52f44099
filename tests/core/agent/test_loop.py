import threading
from contextlib import contextmanager
from types import SimpleNamespace

from structlog.testing import capture_logs

from temper_core.agent.loop import Agent, Parts
from temper_core.records.snapshots import Mode, Snapshot, Status
from temper_core.settings.models import PodSettings, Settings
from temper_core.testing import make_machine


class Cost:
    @contextmanager
    def part(self, _name):
        yield


class FakeObserver:
    period_s = 0.001
    cost = Cost()

    def __init__(self):
        self.looks = 0

    def tick(self, **_given):
        self.looks += 1
        return Snapshot(0.0, 0.0, 1.0, "n", make_machine(), Status(Mode.ENFORCING))

    def close(self):
        pass


class FakeScheduler:
    """Counts its steps, and ends the loop after so many."""

    generation = stats = engine_pid = None
    status = Status(Mode.ENFORCING)
    refusal = ""

    def __init__(self, steps):
        self.steps_left = steps
        self.submitted = []
        self.agent = None
        self.is_closed = False

    def step(self, _now):
        self.steps_left -= 1
        if not self.steps_left:
            self.agent.stop()
        return 0.001

    def submit(self, plan):
        self.submitted.append(plan)

    def close(self):
        self.is_closed = True


class FakeDecider:
    is_unfinished = False
    catalogue = SimpleNamespace(failures=())

    def __init__(self, *answers):
        self.answers = list(answers)

    def decide(self, _pods):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def agent_with(decider, steps=20, linter=None):
    shown = []
    scheduler = FakeScheduler(steps)
    nothing = SimpleNamespace(start=lambda: None, stop=lambda: None, address=None)
    published = SimpleNamespace(
        turned=lambda: None, show_plan=lambda _plan: None, show_snapshot=shown.append
    )
    pods = SimpleNamespace(look=lambda: False, pods=(), defect="", close=lambda: None)
    parts = Parts(
        settings=Settings(pods=PodSettings(poll_s=0.001)),
        host=SimpleNamespace(states=lambda: ()),
        pods=pods,
        decider=decider,
        scheduler=scheduler,
        observer=FakeObserver(),
        linter=linter or SimpleNamespace(judge=lambda _snapshot: (), names=()),
        published=published,
        server=nothing,
    )
    agent = Agent(parts, threading.Event())
    scheduler.agent = agent
    return agent, scheduler, shown


def test_a_decision_that_fails_is_told_tried_again_and_ends_nothing():
    plan = SimpleNamespace(notes=())
    agent, scheduler, shown = agent_with(FakeDecider(TypeError("odd pod"), plan))

    with capture_logs() as logs:
        agent.run()

    assert scheduler.submitted == [plan]
    assert any("decide failed: TypeError('odd pod')" in line for line in shown[0].defects)
    assert shown[-1].defects == ()
    assert [entry["part"] for entry in logs if entry["event"] == "agent_part_failed"] == ["decide"]
    assert scheduler.is_closed


def test_a_linter_that_fails_leaves_the_scheduler_stepping_and_is_logged_once():
    def judge(_snapshot):
        raise ZeroDivisionError

    linter = SimpleNamespace(judge=judge, names=())
    agent, scheduler, shown = agent_with(
        FakeDecider(SimpleNamespace(notes=())), steps=20, linter=linter
    )

    with capture_logs() as logs:
        agent.run()

    assert scheduler.steps_left == 0
    assert shown == []
    assert [entry["part"] for entry in logs if entry["event"] == "agent_part_failed"] == ["observe"]


def test_detectors_that_were_not_all_asked_are_asked_on():
    plans = [SimpleNamespace(notes=()), SimpleNamespace(notes=())]
    decider = FakeDecider(*plans)
    decider.is_unfinished = True
    agent, scheduler, _ = agent_with(decider, steps=2)

    agent.run()

    assert scheduler.submitted == plans
