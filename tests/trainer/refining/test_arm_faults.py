"""What happens to an arm when the node does not do as asked. The door is a fake that has faults.

The benchmark is a real command. ``test_train_run.py`` uses the real door for what works.
"""

import inspect

import pytest
from attrs import define, evolve, field

from temper_core import InputError, MachineError
from temper_plugin_trainer.refining.arms import Arms, Pace
from temper_plugin_trainer.refining.benchmark import Asked
from temper_plugin_trainer.refining.benchmark_runs import Benchmark, BenchmarkError
from temper_plugin_trainer.refining.climb import Verdict, Visit
from temper_plugin_trainer.refining.guardian import Guardian
from temper_plugin_trainer.refining.guards import Guards
from temper_plugin_trainer.refining.trial_door import SAFE_MODE, Door, Look
from temper_plugin_trainer.refining.variants import neighbours, started, stock, tiers_only
from tests.trainer.refining.surfaces import TABLE

BASELINE, START, STOCK = tiers_only(TABLE), started(TABLE), stock(TABLE)
WITH_ENGINE = next(each for each in neighbours(START) if "-> latency" in each.change)
USUAL = Look("1", "enforcing", "", "1.1.4", frozenset(), 0.0)


@define
class FaultyDoor:
    """An agent that enforces, and has the faults that a test sets."""

    pods: tuple[str, ...] = ("shop/db-0",)
    state: Look = USUAL
    why_not: str = ""
    events: dict[str, list[int]] = field(factory=dict)
    refusal: str = ""
    begun: list[str] = field(factory=list)
    in_force: set[str] = field(factory=set)
    enters_safe_mode: bool = True
    late_looks: int = 0
    looks: int = 0
    old: list[Look] = field(factory=list)

    def begin(self, profile, seconds):  # noqa: ARG002 - as the door
        if self.refusal:
            raise InputError(self.refusal)
        self.begun.append(profile)
        self.in_force.add(str(len(self.begun)))
        return str(len(self.begun))

    def release(self, trial):
        self.in_force.discard(trial)

    def request_stock(self, requester):
        self.in_force.add(requester)
        if self.enters_safe_mode:
            self.enter(SAFE_MODE)

    def withdraw_stock(self, requester):
        self.in_force.discard(requester)
        self.enter(USUAL.mode)

    def enter(self, mode):
        """Change the mode. The observations of the agent follow after some looks."""
        self.old = [self.state] * self.late_looks
        self.state = evolve(self.state, mode=mode)

    def stock_obstacle(self):
        return "" if self.state.mode == SAFE_MODE else self.state.mode

    def look(self):
        self.looks += 1
        return self.old.pop() if self.old else evolve(self.state, at=str(self.looks))

    def obstacle(self, trial, profile_id, sizes):  # noqa: ARG002 - as the door
        assert trial in self.in_force
        return self.why_not

    def events_after(self, event, kind):
        return [{"number": each} for each in self.events.get(kind, []) if each > event]


@pytest.fixture(scope="module")
def guardian(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guardian")
    settings = folder / "agent.toml"
    settings.write_text(f'[server]\nlisten = ""\nsocket = "{folder}/none.sock"\n')
    made = Guardian(settings)
    yield made
    made.close()


@pytest.fixture
def door():
    return FaultyDoor()


def arms(door, guardian, command="echo 1", engines=20):
    benchmark = Benchmark(command, Asked("x"), 30.0)
    pace = Pace(warm_up_s=0.0, in_force_within_s=0.3, engines=engines)
    return Arms(door, benchmark, Guards("enforcing", 0.5), guardian, pace, first_event=7)


def visit(variant, trial=1):
    return Visit(variant, trial, 0)


def test_the_fake_has_the_methods_of_the_door_with_the_same_parameters():
    for name, method in inspect.getmembers(FaultyDoor, inspect.isfunction):
        if not name.startswith("_") and name != "enter":
            real = inspect.signature(getattr(Door, name))
            assert [*inspect.signature(method).parameters] == [*real.parameters]


def test_an_arm_is_one_trial_for_all_visits_in_a_row(door, guardian):
    made = arms(door, guardian)

    values = [made.answer(visit(each)).value for each in (START, START, BASELINE)]

    assert values == [1.0, 1.0, 1.0]
    assert door.begun == [START.text, BASELINE.text]
    assert door.in_force == {"2"}


def test_an_arm_that_does_not_get_in_force_is_given_up_and_its_trial_ended(door, guardian):
    door.why_not = "waits for the next engine"

    reading = arms(door, guardian).answer(visit(START))

    assert (reading.value, reading.verdict) == (None, Verdict.NOT_IN_FORCE)
    assert reading.why == "not in force within 0.3 s: waits for the next engine"
    assert door.in_force == set()


def test_an_agent_that_left_its_mode_ends_the_run(door, guardian):
    door.why_not = "safe_mode"
    door.state = evolve(USUAL, mode="safe_mode", why="requested")

    with pytest.raises(MachineError, match=r"safe_mode \(requested\).*the same command continues"):
        arms(door, guardian).answer(visit(START))

    assert door.in_force == set()


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"state": evolve(USUAL, violations=frozenset({"stall of web"}))}, "violation: stall"),
        ({"events": {"engine_ejected": [9]}}, "the engine was ejected"),
    ],
)
def test_a_guard_ends_the_trial_and_a_benchmark_that_still_runs(door, guardian, fault, why):
    for name, value in fault.items():
        setattr(door, name, value)

    reading = arms(door, guardian, "sleep 300").answer(visit(START))

    assert reading.verdict is Verdict.ENDED
    assert why in reading.why
    assert door.in_force == set()


def test_an_ejection_ends_one_trial_and_not_those_after_it(door, guardian):
    made = arms(door, guardian)
    door.events = {"engine_ejected": [3, 9]}

    verdicts = [made.answer(visit(START)).value for _ in range(2)]

    assert verdicts == [None, 1.0]


def test_violations_of_the_baseline_end_no_trial(door, guardian):
    made = arms(door, guardian)
    door.state = evolve(USUAL, violations=frozenset({"old of shop"}))

    made.answer(visit(BASELINE, trial=0))

    assert made.answer(visit(START)).value == 1.0


def test_no_engine_is_asked_for_beyond_the_budget_and_hints_go_on(door, guardian):
    made = arms(door, guardian, engines=2)
    made.answer(visit(START))
    door.events = {"engine_reloaded": [8, 9]}

    refused, hinted = made.answer(visit(WITH_ENGINE)), made.answer(visit(BASELINE))

    assert refused.verdict is Verdict.NOT_IN_FORCE
    assert refused.why == "it needs another engine, and 2 were used"
    assert hinted.value == 1.0
    assert WITH_ENGINE.text not in door.begun


def test_a_benchmark_that_fails_with_the_tier_alone_ends_the_run(door, guardian):
    with pytest.raises(BenchmarkError, match="exit code 1"):
        arms(door, guardian, "false").answer(visit(BASELINE, trial=0))

    assert door.in_force == set()


def test_a_profile_that_the_agent_refuses_is_told_with_its_change(door, guardian):
    door.refusal = "pods: 'shop/db-0' is in trial 4 of ops"

    with pytest.raises(InputError, match="the whole profile: pods: 'shop/db-0' is in trial 4"):
        arms(door, guardian).answer(visit(START))


def test_the_stock_scheduler_is_requested_for_its_visits_and_withdrawn_for_the_next_arm(
    door, guardian
):
    made = arms(door, guardian)

    stock_value = made.answer(visit(STOCK)).value
    during = set(door.in_force)
    next_value = made.answer(visit(BASELINE)).value

    assert (stock_value, next_value) == (1.0, 1.0)
    assert during == {"train-shop"}
    assert door.in_force == {"1"}
    assert door.begun == [BASELINE.text]


def test_a_node_that_does_not_enter_safe_mode_is_no_stock_arm_and_the_request_is_withdrawn(
    door, guardian
):
    door.enters_safe_mode = False

    reading = arms(door, guardian).answer(visit(STOCK))

    assert reading.verdict is Verdict.NOT_IN_FORCE
    assert reading.why == "not in force within 0.3 s: enforcing"
    assert door.in_force == set()


def test_a_node_that_leaves_safe_mode_ends_the_stock_arm(door, guardian):
    made = arms(door, guardian)
    made.answer(visit(STOCK))
    door.state = USUAL

    reading = made.answer(visit(STOCK))

    assert reading.verdict is Verdict.ENDED
    assert reading.why == "the agent is in enforcing (), no longer in safe_mode"
    assert door.in_force == set()


def test_each_return_from_the_stock_scheduler_needs_an_engine_of_the_budget(door, guardian):
    made = arms(door, guardian, engines=2)
    made.answer(visit(BASELINE))
    door.events = {"engine_reloaded": [8, 9]}

    refused = made.answer(visit(STOCK))

    assert refused.why == "it needs another engine, and 2 were used"
    assert door.state == USUAL


def test_outside_of_the_window_no_arm_is_in_force(door, guardian):
    left, in_force = [0.02, 0.01, 0.0], []
    made = arms(door, guardian)
    made.answer(visit(START))

    def opens_in():
        in_force.append(set(door.in_force))
        return left.pop(0)

    made.opens_in = opens_in
    value = made.answer(visit(START)).value

    assert value == 1.0
    assert in_force == [{"1"}, set(), set()]
    assert door.begun == [START.text, START.text]


def test_an_agent_that_leaves_its_mode_ends_the_trial(door, guardian):
    made = arms(door, guardian)
    made.answer(visit(START))
    door.enter(SAFE_MODE)

    reading = made.answer(visit(START))

    assert reading.verdict is Verdict.ENDED
    assert reading.why.startswith("the agent is in safe_mode")
    assert door.in_force == set()


def test_no_arm_is_measured_before_an_observation_of_its_mode(door, guardian):
    door.late_looks = 1
    made = arms(door, guardian)

    values = [made.answer(visit(each)).value for each in (BASELINE, STOCK, BASELINE)]

    assert values == [1.0, 1.0, 1.0]
