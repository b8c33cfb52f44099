"""When and by which plan the agent steers; what steers is a fake here, and real in ``steering``."""

import math
from pathlib import Path

import pytest
from attrs import evolve

from temper_core.agent.steering_control import EXECS_S, NEWS_S, RETRY_S, SteeringControl
from temper_core.errors import MachineError
from temper_core.records.executions import Execution, ExecutionNews
from temper_core.records.plans import Generation, LayerPlan
from temper_core.records.steering import SteeringState
from temper_core.testing import make_machine

NAMES = '[{"name": "critical"}, {"name": "open"}]'


class FakeSteerer:
    """Notes what it is told, and fails as told."""

    def __init__(self):
        self.state = SteeringState(mode="hints", threads=9)
        self.cgroup_events = 0
        self.execs = []
        self.lost = 0
        self.calls = []
        self.problem = ""
        self.again_s = 1.0

    def ready(self, plan):
        self._note("ready", plan)

    def mend(self):
        self._note("mend")

    def apply(self, plan):
        self._note("apply", plan)

    def turn(self, _now, engine):
        self._note("turn", engine)
        return self.again_s

    def truth(self):
        return {}

    @property
    def exec_count(self):
        return len(self.execs)

    def executions(self, seen):
        return self.execs[seen + self.lost :], len(self.execs)

    def release(self):
        self._note("release")

    def close(self):
        self._note("close")

    def _note(self, *call):
        self.calls.append(call)
        if self.problem and call[0] in ("ready", "mend"):
            raise MachineError(self.problem)

    def told(self):
        return [call[0] for call in self.calls]


class FakeScheduler:
    generation = None
    engine_pid = 77
    engine_pids = (77, 78)


class Machine:
    """One that lets steering be opened once ``problem`` is gone."""

    def __init__(self, problem=""):
        self.problem = problem
        self.steerer = FakeSteerer()
        self.tries = 0

    def open(self):
        self.tries += 1
        if self.problem:
            raise MachineError(self.problem)
        return self.steerer


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def scheduler():
    return FakeScheduler()


@pytest.fixture
def helm(machine):
    helm = SteeringControl(machine.open, Path("/bpf/hints"))
    helm.try_again(0.0)
    return helm


def plan(name="a", *, is_steered=True):
    return LayerPlan(make_machine(), (), hints={name: 5} if is_steered else {})


def generation(number=1, of=None):
    return Generation(number, of or plan(), NAMES)


def test_where_steering_cannot_be_had_the_reason_is_told_and_it_is_tried_again(scheduler):
    machine = Machine("no bpffs; mount it")
    helm = SteeringControl(machine.open, Path("/bpf/hints"))
    helm.try_again(0.0)
    helm.try_again(1.0)
    told, could = helm.state, helm.can_steer

    machine.problem = ""
    helm.turn(RETRY_S, scheduler)

    assert (told.mode, told.reason, could) == ("static", "no bpffs; mount it", False)
    assert (helm.state.mode, helm.state.reason, helm.can_steer) == ("hints", "", True)
    assert machine.tries == 2


def test_without_an_engine_nobody_reads_hints_and_there_are_no_walks(helm, machine, scheduler):
    due_in_s = helm.turn(10.0, scheduler)

    assert due_in_s == math.inf
    assert machine.steerer.told() == ["release"]
    assert helm.truth() is None
    assert helm.state.threads == 9


def test_an_engine_with_a_static_plan_reads_no_hints_either(helm, machine, scheduler):
    scheduler.generation = generation(of=plan(is_steered=False))

    assert helm.turn(10.0, scheduler) == math.inf
    assert machine.steerer.told() == ["release"]


def test_threads_are_walked_at_once_and_then_when_it_is_due(helm, machine, scheduler):
    scheduler.generation = generation()

    waits = [helm.turn(now, scheduler) for now in (10.0, 10.9, 11.0)]

    assert machine.steerer.told() == ["apply", "turn", "turn"]
    assert waits == [1.0, pytest.approx(0.1), 1.0]


def test_another_process_of_an_engine_leads_to_a_walk_at_once(helm, machine, scheduler):
    scheduler.generation = generation()
    helm.turn(10.0, scheduler)

    scheduler.engine_pids = (77, 78, 79)
    helm.turn(10.1, scheduler)

    assert machine.steerer.calls[-1][1].pids == (77, 78, 79)


def test_the_engine_is_described_by_its_own_order_of_layers(helm, machine, scheduler):
    scheduler.generation = generation()

    helm.turn(10.0, scheduler)

    [engine] = [call[1] for call in machine.steerer.calls if call[0] == "turn"]
    assert engine.layers == ("critical", "open")
    assert (engine.pid, engine.pids) == (77, (77, 78))


def test_another_plan_for_the_same_layers_moves_threads_at_once(helm, machine, scheduler):
    scheduler.generation, held = generation(), plan("held")
    helm.turn(10.0, scheduler)

    helm.decided(held, scheduler.generation)
    helm.turn(10.1, scheduler)

    assert machine.steerer.calls[-2] == ("apply", held)
    assert machine.steerer.told()[-1] == "turn"
    assert helm.plan_for(scheduler.generation) is held


def test_what_was_decided_for_other_layers_counts_no_more(helm, machine, scheduler):
    old, new = generation(1), generation(2, plan("new"))
    helm.decided(plan("held"), old)
    scheduler.generation = new

    helm.turn(10.0, scheduler)

    assert machine.steerer.calls[0] == ("apply", new.plan)


def test_a_plan_that_was_made_ready_needs_no_second_table(helm, machine, scheduler):
    scheduler.generation = generation()

    helm.ready(scheduler.generation.plan)
    helm.turn(10.0, scheduler)

    assert machine.steerer.told() == ["ready", "turn"]


def test_cgroups_that_came_are_news_once_and_lead_to_a_walk(helm, machine, scheduler):
    scheduler.generation = generation()
    helm.turn(10.0, scheduler)
    machine.steerer.cgroup_events = 3

    news = [helm.sees_news(10.1), helm.sees_news(10.1)]
    helm.turn(10.1, scheduler)

    assert news == [True, False]
    assert machine.steerer.told() == ["apply", "turn", "turn"]


def test_whether_there_is_news_is_asked_often_and_changes_nothing(helm, machine, scheduler):
    scheduler.generation = generation()
    assert (helm.look_in_s, helm.has_news(10.0)) == (math.inf, False)
    helm.turn(10.0, scheduler)
    helm.executions(10.0)
    assert (helm.look_in_s, helm.has_news(10.0)) == (NEWS_S, False)

    machine.steerer.cgroup_events = 3

    assert helm.has_news(10.1)
    assert helm.has_news(10.1)
    assert helm.sees_news(10.1)
    assert not helm.has_news(10.1)


def test_executions_are_news_when_they_may_be_read_again(helm, machine, scheduler):
    scheduler.generation = generation()
    helm.turn(10.0, scheduler)
    helm.executions(10.0)
    machine.steerer.execs.append(Execution(1, 1))
    assert helm.has_news(10.1)

    helm.executions(10.1)
    machine.steerer.execs.append(Execution(2, 1))

    assert [helm.has_news(now) for now in (10.2, 10.1 + EXECS_S)] == [False, True]


def test_cgroups_are_no_news_in_a_rest(helm, machine, scheduler):
    scheduler.generation = generation()
    helm.turn(10.0, scheduler)
    helm.executions(10.0)
    helm.rest(10.0, took_s=0.1)
    machine.steerer.cgroup_events = 3

    assert [helm.has_news(now) for now in (10.5, 11.0)] == [False, True]


def test_a_storm_of_cgroups_has_the_pods_looked_at_now_and_then(helm, machine, scheduler):
    scheduler.generation = generation()
    helm.turn(10.0, scheduler)
    looks = 0

    for step in range(100):
        now = 10.0 + step / 100
        machine.steerer.cgroup_events += 20
        if helm.sees_news(now):
            looks += 1
            helm.rest(now, took_s=0.03)

    assert looks == 4


def test_without_an_engine_cgroups_are_no_news(helm, machine):
    machine.steerer.cgroup_events = 3

    assert not helm.sees_news(10.0)


def test_executions_are_told_once_and_at_most_twice_a_second(helm, machine, scheduler):
    scheduler.generation = generation()
    helm.turn(10.0, scheduler)
    machine.steerer.execs.append(Execution(1, 1))  # before anybody listened
    begins = helm.executions(10.0)
    one, two = Execution(20, 9), Execution(21, 20)

    machine.steerer.execs.append(one)
    first = helm.executions(10.1)
    machine.steerer.execs.append(two)
    soon = [helm.executions(10.2), helm.executions(10.1 + EXECS_S - 0.01)]
    second = helm.executions(10.1 + EXECS_S)
    nothing = helm.executions(20.0)

    assert begins == ExecutionNews(is_heard=True)
    assert first == ExecutionNews((one,), is_heard=True)
    assert soon == [None, None]
    assert second == ExecutionNews((two,), is_heard=True)
    assert nothing is None


def test_executions_that_were_overwritten_are_told_as_not_heard(helm, machine, scheduler):
    scheduler.generation = generation()
    helm.turn(10.0, scheduler)
    helm.executions(10.0)

    machine.steerer.execs += [Execution(pid, 9) for pid in range(5)]
    machine.steerer.lost = 2
    news = helm.executions(11.0)

    assert news == ExecutionNews(tuple(machine.steerer.execs[2:]), is_heard=False)
    assert helm.executions(12.0) == ExecutionNews(is_heard=True)


def test_without_an_engine_executions_are_not_heard_and_that_is_told_once(helm, scheduler):
    before = helm.executions(9.0)
    scheduler.generation = generation()
    helm.turn(10.0, scheduler)
    helm.executions(10.0)

    scheduler.generation = None
    helm.turn(11.0, scheduler)

    assert before is None
    assert [helm.executions(11.0), helm.executions(12.0)] == [ExecutionNews(), None]


def test_a_map_that_cannot_be_made_ready_leads_to_static_plans_until_it_is_mended(
    helm, machine, scheduler
):
    machine.steerer.problem = "the directory is another's"
    with pytest.raises(MachineError, match="another's"):
        helm.ready(plan())
    could, told = helm.can_steer, helm.state

    machine.steerer.problem = ""
    helm.turn(math.inf, scheduler)

    assert (could, told.mode, told.reason) == (False, "static", "the directory is another's")
    assert helm.can_steer
    assert machine.tries == 1


def test_an_engine_that_reads_hints_is_steered_even_if_no_next_one_could_be(
    helm, machine, scheduler
):
    scheduler.generation = generation()
    machine.steerer.problem = "the directory is another's"
    with pytest.raises(MachineError):
        helm.ready(plan())

    helm.turn(10.0, scheduler)

    assert machine.steerer.told() == ["ready", "apply", "turn"]
    assert (helm.state.mode, helm.state.reason) == ("hints", "the directory is another's")


def test_a_map_is_never_ready_where_there_is_none():
    helm = SteeringControl(Machine("no BPF").open, Path("/bpf/hints"))
    helm.try_again(0.0)

    with pytest.raises(MachineError, match="no BPF"):
        helm.ready(plan())


def test_what_is_wrong_with_steering_itself_is_told(helm, machine):
    machine.steerer.state = evolve(machine.steerer.state, reason="a walk failed")

    assert helm.state.reason == "a walk failed"


def test_after_closing_nothing_is_steered(helm, machine, scheduler):
    scheduler.generation = generation()
    helm.turn(10.0, scheduler)

    helm.close()
    helm.close()

    assert machine.steerer.told().count("close") == 1
    assert helm.truth() is None
    assert not helm.can_steer


def test_while_the_host_is_restored_nothing_is_kept_in_the_kernel_nor_tried(helm, machine):
    helm.withdraw()
    helm.try_again(10 * RETRY_S)

    assert machine.steerer.told()[-1] == "close"
    assert machine.tries == 1
    assert not helm.can_steer
    assert helm.state.reason == "the host was restored"


def test_it_steers_again_at_once_when_it_may_come_back(helm, machine):
    helm.withdraw()

    helm.come_back()

    assert machine.tries == 2
    assert helm.can_steer
