import math
import os
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from attrs import evolve
from structlog.testing import capture_logs

from temper_core.agent import loop
from temper_core.agent.loop import Agent
from temper_core.agent.parts import Parts
from temper_core.agent.waker import LoopWaker
from temper_core.agent.watchdog import GRACE_S
from temper_core.errors import MachineError
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.records.executions import Execution, ExecutionNews
from temper_core.records.plans import Generation
from temper_core.records.profiles import ProfileFailure
from temper_core.records.snapshots import InstrumentCost, Mode, Section, Snapshot, Status
from temper_core.records.steering import SteeringState
from temper_core.scheduler.failure.endings import Diagnosis, EndKind
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
        self.given = {}
        self.is_alarmed = False

    def hurried(self, due):
        return 0.0 if self.is_alarmed else due

    def tick(self, **given):
        self.looks += 1
        self.given = given
        return Snapshot(0.0, 0.0, 1.0, "n", make_machine(), Status(Mode.ENFORCING))

    def close(self):
        pass


class FakeScheduler:
    """Counts its steps, and ends the loop after so many."""

    diagnosis = None
    generation = stats = engine_pid = None
    engine_pids = ()
    swap_obstacle = ""
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

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.catalogues = []

    def follow(self, catalogue):
        self.catalogues.append(catalogue)
        self.is_unfinished = True

    def decide(self, _pods, in_force, **given):
        self.asked.append((in_force, given))
        answer = self.answers.pop(0)
        self.is_unfinished = self.is_unfinished and not self.catalogues and bool(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


class FakeProfiles:
    """Has another catalogue at each look that is told to."""

    is_heard = True
    reloads: tuple[str, ...] = ()

    def __init__(self, news=(), descriptor=-1):
        self.news = list(news)
        self.catalogue = ProfileCatalogue()
        self.descriptor = descriptor

    def fileno(self):
        return self.descriptor

    @property
    def is_due(self):
        return bool(self.reloads)

    def look(self):
        has_news = bool(self.news) and self.news.pop(0)
        if has_news:
            self.catalogue = ProfileCatalogue(failures=(ProfileFailure("web.toml", "web", "odd"),))
        return has_news


class FakeSteering:
    """Notes what it is told; ``news`` are the answers to whether cgroups came or went."""

    can_steer = False
    state = SteeringState(reason="because")
    look_in_s = math.inf
    turns = 0

    def __init__(self, news=(), executions=()):
        self.news = list(news)
        self.executions_left = list(executions)
        self.steered_by = []
        self.is_closed = False

    def try_again(self, _now):
        pass

    def sees_news(self, _now):
        return bool(self.news) and self.news.pop(0)

    def executions(self, _now):
        return self.executions_left.pop(0) if self.executions_left else None

    def rest(self, _now, took_s):
        assert took_s >= 0

    def decided(self, plan, generation):
        self.steered_by.append((plan, generation))

    def plan_for(self, generation):
        return self.steered_by[-1][0] if self.steered_by else generation.plan

    def has_news(self, _now):
        return bool(self.news)

    def turn(self, _now, _scheduler):
        self.turns += 1
        return math.inf

    def truth(self):
        return {1: "truth"}

    def close(self):
        self.is_closed = True


def decision(name="plan", held=None, again_at=None):
    wanted = SimpleNamespace(name=name, notes=())
    return SimpleNamespace(wanted=wanted, by_now=held or wanted, again_at=again_at)


def agent_with(decider, steps=20, linter=None, steering=None, profiles=None, **more):
    shown = []
    scheduler = FakeScheduler(steps)
    nothing = SimpleNamespace(
        bind=lambda: None, start=lambda: None, stop=lambda: None, address=None, defect=""
    )
    published = SimpleNamespace(
        series=7,
        undeclared=(),
        turned=lambda: None,
        show_plan=lambda _plan: None,
        show_snapshot=lambda snapshot, _truth: shown.append(snapshot),
        show_failures=lambda failures: vars(published).update(failures=failures),
    )
    pods = SimpleNamespace(
        look=lambda: False,
        pods=(),
        defect="",
        close=lambda: None,
        fileno=lambda: -1,
        rest_s=lambda poll_s: poll_s,
    )
    parts = Parts(
        settings=Settings(pods=PodSettings(poll_s=0.001)),
        host=SimpleNamespace(states=lambda: (), retry=lambda: False),
        pods=pods,
        profiles=profiles or FakeProfiles(),
        decider=decider,
        steering=steering or FakeSteering(),
        scheduler=scheduler,
        observer=FakeObserver(),
        linter=linter or SimpleNamespace(judge=lambda _snapshot: (), names=()),
        published=published,
        server=nothing,
        requests=SimpleNamespace(fileno=lambda: -1, defect=""),
        **more,
    )
    agent = Agent(parts, LoopWaker())
    scheduler.agent = agent
    return agent, scheduler, shown


def test_a_decision_that_fails_is_told_tried_again_and_ends_nothing():
    good = decision()
    agent, scheduler, shown = agent_with(FakeDecider(TypeError("odd pod"), good))

    with capture_logs() as logs:
        agent.run()

    assert scheduler.submitted == [good.wanted]
    assert any("decide failed: TypeError('odd pod')" in line for line in shown[0].defects)
    assert shown[-1].defects == ()
    assert [entry["part"] for entry in logs if entry["event"] == "agent_part_failed"] == ["decide"]
    assert scheduler.is_closed


def test_a_metric_that_was_not_declared_is_a_defect():
    agent, _, shown = agent_with(FakeDecider(decision()), steps=3)
    agent._parts.published.undeclared = ("plugin acme: its metric temper_acme is not declared",)

    agent.run()

    assert shown[-1].defects == agent._parts.published.undeclared


def test_a_linter_that_fails_leaves_the_scheduler_stepping_and_is_logged_once():
    def judge(_snapshot):
        raise ZeroDivisionError

    linter = SimpleNamespace(judge=judge, names=())
    agent, scheduler, shown = agent_with(FakeDecider(decision()), steps=20, linter=linter)

    with capture_logs() as logs:
        agent.run()

    assert scheduler.steps_left == 0
    assert shown == []
    assert [entry["part"] for entry in logs if entry["event"] == "agent_part_failed"] == ["observe"]
    assert agent._parts.published.failures == {"observe": "ZeroDivisionError()"}


def test_detectors_that_were_not_all_asked_are_asked_on():
    decisions = [decision("one"), decision("two")]
    decider = FakeDecider(*decisions)
    decider.is_unfinished = True
    agent, scheduler, _ = agent_with(decider)

    agent.run()

    assert scheduler.submitted == [each.wanted for each in decisions]


def test_threads_are_steered_by_what_the_layers_in_force_serve_while_another_plan_is_wanted():
    held = SimpleNamespace(name="held", notes=())
    steering = FakeSteering()
    agent, scheduler, _ = agent_with(FakeDecider(decision(held=held)), steps=2, steering=steering)

    agent.run()

    assert [plan.name for plan in scheduler.submitted] == ["plan"]
    assert steering.steered_by == [(held, None)]
    assert steering.is_closed


def test_another_engine_in_force_is_decided_for_anew():
    in_force = SimpleNamespace(name="in force", notes=())
    decider = FakeDecider(decision("one"), decision("two"))
    agent, scheduler, _ = agent_with(decider, steps=4)
    step = scheduler.step

    def attach_at_the_second_step(now):
        scheduler.generation = Generation(7, in_force, "[]") if scheduler.steps_left < 4 else None
        return step(now)

    scheduler.step = attach_at_the_second_step
    agent.run()

    assert [asked for asked, _ in decider.asked] == [None, in_force]


def test_whether_threads_can_be_steered_is_part_of_what_a_decision_rests_on():
    steering = FakeSteering()
    decider = FakeDecider(decision("static"), decision("steered"))
    agent, scheduler, _ = agent_with(decider, steps=4, steering=steering)
    step = scheduler.step

    def learn_to_steer(now):
        steering.can_steer = True
        return step(now)

    scheduler.step = learn_to_steer
    agent.run()

    assert [given["steered"] for _, given in decider.asked] == [False, True]


def test_a_decision_is_looked_at_again_when_it_says_so():
    decider = FakeDecider(decision(again_at=0.0), decision())
    agent, scheduler, _ = agent_with(decider, steps=30)

    agent.run()

    assert len(decider.asked) == 2
    assert len(scheduler.submitted) == 2


def test_other_profiles_are_decided_by_although_the_pods_are_the_same():
    decider = FakeDecider(decision("one"), decision("two"))
    profiles = FakeProfiles(news=[False, True])
    agent, scheduler, shown = agent_with(decider, steps=30, profiles=profiles)

    agent.run()

    assert decider.catalogues == [profiles.catalogue]
    assert [plan.name for plan in scheduler.submitted] == ["one", "two"]
    assert agent._parts.observer.given["profile_failures"] == profiles.catalogue.failures
    assert shown[-1].defects == ("profiles: web.toml: odd",)


def test_a_snapshot_has_the_first_failures_of_many_and_their_number():
    profiles = FakeProfiles()
    failures = tuple(ProfileFailure(f"{n:04}.toml", "", "é" * 9_000) for n in range(1_000))
    profiles.catalogue = ProfileCatalogue(failures=failures)
    agent, _, shown = agent_with(FakeDecider(decision("one")), steps=3, profiles=profiles)

    agent.run()

    given = agent._parts.observer.given["profile_failures"]
    assert given[:-1] == failures[:100]
    assert given[-1].reason == "900 more could not be loaded"
    assert len(shown[-1].defects) == 21
    assert shown[-1].defects[-1] == "profiles: 980 more could not be loaded"


def test_profiles_that_cannot_be_decided_by_are_tried_again():
    decider = FakeDecider(decision("one"), ValueError("odd profile"), decision("two"))
    profiles = FakeProfiles(news=[False, True])
    agent, scheduler, shown = agent_with(decider, steps=30, profiles=profiles)

    with capture_logs():
        agent.run()

    assert [plan.name for plan in scheduler.submitted] == ["one", "two"]
    assert not any("decide" in defect for defect in shown[-1].defects)


def test_news_of_cgroups_has_the_pods_looked_at_at_once():
    looks = []
    steering = FakeSteering(news=[False, True, False])
    agent, _, _ = agent_with(FakeDecider(decision()), steps=4, steering=steering)
    parts = agent._parts
    parts.pods.look = lambda: looks.append(1)
    agent._parts = evolve(parts, settings=Settings(pods=PodSettings(poll_s=3600)))

    agent.run()

    assert len(looks) == 2


def resting(steering, step_in_s, steps):
    """Return an agent to which nothing is due but steps, in so many seconds."""
    agent, scheduler, _ = agent_with(FakeDecider(decision()), steps=steps, steering=steering)
    steering.look_in_s = 0.001
    step = scheduler.step
    scheduler.step = lambda now: step(now) and step_in_s
    settings = Settings(pods=PodSettings(poll_s=3600))
    agent._parts = evolve(agent._parts, settings=settings)
    agent._parts.observer.period_s = 3600
    return agent


def test_a_look_for_news_of_steering_takes_no_turn():
    steering, looks = FakeSteering(), []
    steering.has_news = looks.append
    agent = resting(steering, step_in_s=0.05, steps=4)

    agent.run()

    assert len(looks) > 2 * steering.turns


def test_news_of_steering_ends_a_sleep():
    steering, slept_s = FakeSteering(news=[False, True, True]), []
    agent = resting(steering, step_in_s=3600, steps=3)
    wait = agent._wake.wait
    agent._wake.wait = lambda timeout_s: slept_s.append(timeout_s) or wait(timeout_s)

    agent.run()

    assert steering.turns == 3
    assert max(slept_s) <= steering.look_in_s


def test_no_sleep_outlasts_the_grace_of_the_watchdog_that_sigusr1_from_outside_begins(monkeypatch):
    monkeypatch.setattr(loop, "FIRST_WINDOW_S", 3600.0)
    steering, slept_s = FakeSteering(), []
    agent = resting(steering, step_in_s=3600, steps=3)
    steering.look_in_s = math.inf
    agent._wake.wait = lambda timeout_s: slept_s.append(timeout_s) or True

    agent.run()

    assert 0 < max(slept_s) < GRACE_S


def test_a_request_to_reload_profiles_is_answered_although_nothing_is_due():
    profiles, looks = FakeProfiles(), []
    agent, _, _ = agent_with(FakeDecider(decision()), steps=6, profiles=profiles)
    agent._parts = evolve(agent._parts, settings=Settings(pods=PodSettings(poll_s=3600)))

    def look():
        looks.append(bool(profiles.reloads))
        profiles.reloads = () if profiles.reloads else ("asked",)
        return len(looks) > 2

    profiles.look = look

    agent.run()

    assert looks[:2] == [False, True]


def test_profile_files_that_are_left_are_read_in_the_next_turns_without_a_sleep():
    profiles, looks, slept_s = FakeProfiles(), [], []
    agent, _, _ = agent_with(FakeDecider(decision()), steps=6, profiles=profiles)
    agent._parts = evolve(agent._parts, settings=Settings(pods=PodSettings(poll_s=3600)))
    agent._wake.wait = slept_s.append

    def look():
        looks.append(1)
        profiles.reloads = ("left",) if len(looks) < 3 else ()
        return False

    profiles.look = look

    agent.run()

    assert len(looks) == 3
    assert slept_s[0] == 0


def test_a_plugin_that_answers_late_is_asked_and_decided_by_without_other_news():
    told, looks = [], []
    decider, profiles = FakeDecider(decision()), FakeProfiles()
    agent, _, _ = agent_with(decider, steps=4, profiles=profiles)
    parts = agent._parts
    profiles.ask_again = lambda: told.append("profiles")
    decider.ask_again = lambda: told.append("detectors")
    parts.pods.look = lambda: looks.append(1)
    answers = [False, True]
    parts.host.retry = lambda: bool(answers) and answers.pop(0)
    agent._parts = evolve(parts, settings=Settings(pods=PodSettings(poll_s=3600)))

    agent.run()

    assert told == ["profiles", "detectors"]
    assert len(looks) == 2


def test_an_exec_in_a_container_has_the_pods_looked_at_at_once():
    told, looks = [], []
    news = ExecutionNews((Execution(20, 9),), is_heard=True)
    agent, _, _ = agent_with(
        FakeDecider(decision()), steps=4, steering=FakeSteering(executions=[None, news])
    )
    parts = agent._parts
    parts.pods.look = lambda: looks.append(1)
    parts.pods.executed = lambda news: told.append(news) or 0.0
    agent._parts = evolve(parts, settings=Settings(pods=PodSettings(poll_s=3600)))

    agent.run()

    assert told == [news]
    assert len(looks) == 2


def test_an_exec_that_concerns_no_container_leads_to_no_look():
    looks = []
    news = ExecutionNews((Execution(20, 9),), is_heard=True)
    agent, _, _ = agent_with(
        FakeDecider(decision()), steps=4, steering=FakeSteering(executions=[None, news])
    )
    parts = agent._parts
    parts.pods.look = lambda: looks.append(1)
    parts.pods.executed = lambda _news: math.inf
    agent._parts = evolve(parts, settings=Settings(pods=PodSettings(poll_s=3600)))

    agent.run()

    assert len(looks) == 1


@pytest.fixture
def silent():
    """Two descriptors that never have anything to be read."""
    pipes = [os.pipe() for _ in range(2)]
    yield [reading for reading, _ in pipes]
    for descriptor in (each for pipe in pipes for each in pipe):
        os.close(descriptor)


@pytest.mark.parametrize(("is_heard", "looks_once"), [(True, True), (False, False)])
def test_pods_and_profiles_rest_only_while_both_tell_of_every_change(silent, is_heard, looks_once):
    looks = []
    of_pods, of_profiles = silent
    profiles = FakeProfiles(descriptor=of_profiles)
    profiles.is_heard = is_heard
    agent, _, _ = agent_with(FakeDecider(decision()), profiles=profiles)
    agent._parts.pods.fileno = lambda: of_pods
    agent._parts.pods.rest_s = lambda _poll_s: 3600
    agent._parts.pods.look = lambda: looks.append(1)

    agent.run()

    assert (len(looks) == 1) is looks_once


def test_pods_whose_descriptor_cannot_be_slept_on_are_looked_at_by_the_clock(silent, tmp_path):
    looks = []
    profiles = FakeProfiles(descriptor=silent[0])
    agent, _, _ = agent_with(FakeDecider(decision()), profiles=profiles)
    agent._parts.pods.rest_s = lambda _poll_s: 3600
    agent._parts.pods.look = lambda: looks.append(1)

    with (tmp_path / "ordinary").open("w") as file:
        agent._parts.pods.fileno = file.fileno
        agent.run()

    assert len(looks) > 1


def test_the_observer_is_given_the_truth_and_the_snapshot_tells_of_steering():
    agent, _, shown = agent_with(FakeDecider(decision()), steps=3)

    agent.run()

    assert agent._parts.observer.given["truth"] == {1: "truth"}
    assert shown[-1].steering.reason == "because"


@pytest.mark.parametrize(("is_alarmed", "looks"), [(False, 1), (True, 5)])
def test_a_look_comes_before_its_time_where_the_observer_says_so(is_alarmed, looks):
    agent, _, shown = agent_with(FakeDecider(decision()), steps=5)
    agent._parts.observer.is_alarmed = is_alarmed
    agent._parts.observer.period_s = 3600

    agent.run()

    assert len(shown) == looks


def test_a_node_that_has_an_agent_is_left_alone():
    @contextmanager
    def taken():
        raise MachineError("another agent runs on this node")
        yield

    agent, scheduler, _ = agent_with(FakeDecider(), lock=taken)

    with pytest.raises(MachineError, match="another agent"):
        agent.run()

    assert not scheduler.is_closed


def test_a_helm_that_fails_leaves_the_scheduler_stepping_and_is_told():
    steering = FakeSteering()
    steering.turn = lambda *_given: 1 / 0
    agent, scheduler, shown = agent_with(FakeDecider(decision()), steps=5, steering=steering)

    with capture_logs():
        agent.run()

    assert scheduler.steps_left == 0
    assert any("steer failed: ZeroDivisionError" in line for line in shown[-1].defects)


def test_how_the_last_engine_ended_is_in_the_snapshot_with_what_to_do():
    agent, scheduler, shown = agent_with(FakeDecider(decision()), steps=3)
    scheduler.diagnosis = Diagnosis(EndKind.SYSRQ, "disabled by sysrq-S")

    agent.run()

    end = shown[-1].last_end
    assert (end.kind, end.summary) == ("sysrq", "disabled by sysrq-S")
    assert end.remedy


class FakeInstruments:
    """Notes, in a list that it shares with the scheduler, when it is called."""

    defects = ("instrument cluster: there is none",)

    def __init__(self, noted):
        self.noted = noted
        self.told = []

    def open(self):
        self.noted.append("opened")

    def costs(self):
        return {"cluster": InstrumentCost(helpers=1)}

    def with_sections(self, snapshot):
        return evolve(snapshot, sections={"cluster": Section(1, {"pods": len(snapshot.pods)})})

    def tell(self, snapshot):
        self.told.append(snapshot)

    def close(self):
        self.noted.append("closed")


def test_instruments_are_opened_before_anything_is_enforced_and_closed_after_the_engine():
    noted = []
    instruments = FakeInstruments(noted)
    agent, scheduler, shown = agent_with(FakeDecider(decision()), steps=3, instruments=instruments)
    step, close = scheduler.step, scheduler.close
    scheduler.step = lambda now: (noted.append("stepped"), step(now))[1]
    scheduler.close = lambda: (noted.append("engine ended"), close())[1]

    agent.run()

    assert list(dict.fromkeys(noted)) == ["opened", "stepped", "engine ended", "closed"]
    assert instruments.told == shown != []
    assert shown[-1].defects == instruments.defects
    assert shown[-1].overhead.instruments == instruments.costs()


def test_the_linter_judges_by_the_sections_and_by_what_the_agent_knows():
    judged = []
    linter = SimpleNamespace(judge=lambda seen: judged.append(seen) or (), names=("calm",))
    instruments = FakeInstruments([])
    agent, _, shown = agent_with(FakeDecider(decision()), linter=linter, instruments=instruments)

    agent.run()

    assert judged[0].sections == {"cluster": Section(1, {"pods": 0})}
    assert judged[0].defects == instruments.defects
    assert shown[0] == evolve(judged[0], invariants=("calm",))
