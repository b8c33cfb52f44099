"""The stop ladder against a process that no signal ends, as one in uninterruptible sleep."""

import json

import pytest
from structlog.testing import capture_logs

from temper_core.engine.stats import StatsClient
from temper_core.records.plans import Generation
from temper_core.scheduler.engine_process.engine_run import EnginePhase, EngineRun, Limits
from temper_core.scheduler.engine_process.environment import EngineEnvironment
from temper_core.scheduler.host.kernel import KernelLog


class DeafProcess:
    """An engine that is signalled in vain."""

    pid = 4711
    exit_code = None
    gate = None
    is_output_complete = True
    errors = log = ""

    def __init__(self) -> None:
        self.signals: list[str] = []
        self.is_closed = False

    def terminate(self) -> None:
        self.signals.append("TERM")

    def kill(self) -> None:
        self.signals.append("KILL")

    def close(self) -> None:
        self.is_closed = True


class ObservedLog:
    """A kernel's log that notes when it is read."""

    def __init__(self) -> None:
        self.moments: list[float] = []

    def drain(self, now: float) -> None:
        self.moments.append(now)


@pytest.fixture
def run_of(node, plan):
    def make(process, log=None, **limits):
        surroundings = EngineEnvironment(node.roots, log or KernelLog(node.roots.kmsg), 0.0)
        generation = Generation(1, plan("a"), json.dumps([]))
        stats = StatsClient(str(node.roots.stats_socket))
        return EngineRun(generation, process, stats, surroundings, Limits(**limits))

    return make


def test_the_ladder_goes_from_term_over_kill_to_sysrq(node, run_of):
    process = DeafProcess()
    trigger = node.put("proc/sysrq-trigger", "")
    node.attach("layered_1.1.4")
    run = run_of(process, stop_deadline_s=10.0, sysrq=True)

    run.stop(0.0)
    run.step(9.9)
    assert process.signals == ["TERM"]
    run.step(10.1)
    assert process.signals == ["TERM", "KILL"]
    run.step(15.2)
    assert trigger.read_text() == "S"
    node.detach()
    run.step(20.3)

    assert run.phase is EnginePhase.ENDED
    assert process.is_closed


def test_without_sysrq_the_ladder_ends_in_an_error_that_says_what_to_do(node, run_of):
    process = DeafProcess()
    node.attach("layered_1.1.4")
    run = run_of(process, stop_deadline_s=1.0)

    run.stop(0.0)
    for now in (2.0, 8.0, 14.0, 20.0):
        run.step(now)

    assert run.phase is EnginePhase.STOPPING
    assert "echo S > /proc/sysrq-trigger" in run.problem
    assert process.signals == ["TERM", "KILL", "KILL", "KILL", "KILL"]


def test_an_engine_that_has_attached_nothing_is_killed_at_once(run_of):
    process = DeafProcess()
    run = run_of(process)

    run.stop(0.0)

    assert process.signals == ["KILL"]


def test_the_kernels_log_is_kept_up_with_while_an_engine_runs(run_of):
    log = ObservedLog()
    run = run_of(DeafProcess(), log=log)

    run.step(1.0)
    run.step(2.0)

    assert log.moments == [1.0, 2.0]


def test_stopping_twice_starts_the_ladder_once(node, run_of):
    process = DeafProcess()
    node.attach("layered_1.1.4")
    run = run_of(process)

    run.stop(0.0)
    run.stop(1.0)

    assert process.signals == ["TERM"]


@pytest.mark.parametrize("sysrq", [False, True])
def test_a_process_that_stays_for_ever_ends_its_run_once_the_kernel_is_free(node, run_of, sysrq):
    trigger = node.put("proc/sysrq-trigger", "")
    process = DeafProcess()
    run = run_of(process, stop_deadline_s=1.0, sysrq=sysrq)

    with capture_logs() as logs:
        run.stop(0.0)
        run.step(5.1)
        assert run.phase is EnginePhase.STOPPING
        run.step(10.2)

    assert run.phase is EnginePhase.ENDED
    assert process.is_closed
    assert trigger.read_text() == ""
    assert {"event": "engine_process_left_behind", "log_level": "error", "pid": 4711} in logs


def test_a_kernel_that_cannot_be_looked_at_ends_no_run(node, run_of):
    process = DeafProcess()
    run = run_of(process)
    run.stop(0.0)
    node.remove("sys/kernel/sched_ext/state")
    node.put("sys/kernel/sched_ext/state/in", "the way")

    for now in (5.1, 10.2, 15.3):
        run.step(now)

    assert run.phase is EnginePhase.STOPPING


def test_an_old_process_that_stays_is_not_ended_through_its_successors_scheduler(node, run_of):
    trigger = node.put("proc/sysrq-trigger", "")
    process = DeafProcess()
    node.attach("layered_1.1.4")
    run = run_of(process, stop_deadline_s=10.0, sysrq=True)
    run.stop(0.0)
    assert not run.has_let_go
    node.detach()
    run.step(1.0)
    assert run.has_let_go

    node.attach("layered_1.1.4")
    for now in (10.1, 15.2, 20.3):
        run.step(now)

    assert process.signals == ["TERM", "KILL", "KILL"]
    assert trigger.read_text() == ""
    assert run.phase is EnginePhase.ENDED
    assert node.state == "enabled"
