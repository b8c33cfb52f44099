"""When the programs of containers are read again. The time and the programs are made up."""

import math
from itertools import pairwise

import pytest

from temper_core.node.container_programs import Programs
from temper_core.node.program_watch import (
    LINGER_S,
    LONGEST_READ_REST_S,
    MOST_READS,
    YOUNG_GAP_S,
    YOUNG_S,
    ProgramWatch,
)
from temper_core.records.executions import Execution, ExecutionNews

FIRST, CHILD, SHIM = 20, 30, 9
HEARD = ExecutionNews(is_heard=True)


class Container:
    """One container whose programs the test chooses. It counts the reads."""

    def __init__(self):
        self.names = ("sh",)
        self.listened = frozenset({FIRST})
        self.again_in_s = None
        self.born_at = 0.0
        self.reads = []
        self.now = 0.0

    def read(self, path, _known):
        self.reads.append((path, self.now))
        age_s = self.now - self.born_at
        return Programs(self.names, self.listened, self.again_in_s, age_s)


@pytest.fixture
def container():
    return Container()


@pytest.fixture
def watch(container):
    return ProgramWatch(container.read)


def run(watch, container, seconds, *, step_s=0.1):
    """Look as the agent does, whenever the watch is due. Return the names at each moment."""
    seen = []
    until = container.now + seconds
    while container.now < until:
        if watch.due_at() <= container.now:
            watch.look(container.now)
        seen.append((container.now, watch.names(["c"], container.now)["c"]))
        container.now += step_s
    return seen


def first_seen(seen, name):
    return next((at for at, names in seen if name in names), math.inf)


def test_a_young_container_that_executes_its_program_is_noticed_within_two_seconds(
    watch, container
):
    run(watch, container, 30.0)
    container.names = ("mysqld",)
    executed_at = container.now

    seen = run(watch, container, 10.0)

    assert first_seen(seen, "mysqld") - executed_at <= 2.0


def test_the_reads_of_a_container_become_rare_with_its_age(watch, container):
    run(watch, container, 3600.0, step_s=0.5)

    young = [at for _, at in container.reads if at < YOUNG_S]
    old = [at for _, at in container.reads if at >= YOUNG_S]
    assert len(young) <= YOUNG_S / YOUNG_GAP_S + 3
    assert len(old) <= 45


def test_a_container_that_was_old_when_found_is_not_read_as_a_young_one(watch, container):
    container.born_at = -36_000.0

    run(watch, container, 250.0)

    assert len(container.reads) == 1


def test_an_exec_of_the_first_process_is_read_at_once_at_any_age(watch, container):
    watch.executed(HEARD, 0.0)
    run(watch, container, 400.0)
    container.reads.clear()
    container.names = ("mysqld",)

    watch.executed(ExecutionNews((Execution(FIRST, SHIM),), is_heard=True), container.now)

    assert watch.due_at() <= container.now
    assert watch.look(container.now)
    assert watch.names(["c"], container.now) == {"c": ("mysqld",)}


def test_while_execs_are_heard_and_none_concerns_a_container_it_is_not_read(watch, container):
    watch.executed(HEARD, 0.0)
    run(watch, container, 3.0)
    container.reads.clear()
    strange = ExecutionNews(tuple(Execution(pid, SHIM) for pid in range(100, 400)), is_heard=True)

    for _ in range(20):
        watch.executed(strange, container.now)
        run(watch, container, 5.0)

    assert container.reads == []


def test_a_child_of_an_init_is_named_once_it_has_settled(watch, container):
    watch.executed(HEARD, 0.0)
    run(watch, container, 100.0)
    container.again_in_s = 0.4
    watch.executed(ExecutionNews((Execution(CHILD, FIRST),), is_heard=True), container.now)
    began_at = container.now
    run(watch, container, 0.3)
    container.names, container.again_in_s = ("sh", "mysqld"), None

    seen = run(watch, container, 5.0)

    assert first_seen(seen, "mysqld") - began_at <= 2.0


def test_a_loss_of_notes_has_every_container_read_again(watch, container):
    watch.executed(HEARD, 0.0)
    run(watch, container, 100.0)
    container.names = ("mysqld",)

    watch.executed(ExecutionNews(), container.now)
    seen = run(watch, container, 2.0)

    assert first_seen(seen, "mysqld") < math.inf


def test_a_program_that_its_supervisor_starts_again_keeps_its_name(watch, container):
    container.names = ("tini", "mysqld")
    run(watch, container, 20.0)
    container.names = ("tini",)
    gone = run(watch, container, LINGER_S / 2)
    container.names = ("tini", "mysqld")
    back = run(watch, container, 20.0)

    assert {names for _, names in (*gone, *back)} == {("tini", "mysqld")}


def test_a_program_that_has_ended_for_good_loses_its_name(watch, container):
    container.names = ("tini", "mysqld")
    run(watch, container, 20.0)
    container.names = ("tini",)

    seen = run(watch, container, LINGER_S + 10.0)

    assert seen[-1][1] == ("tini",)


def test_a_shell_that_runs_one_command_after_the_other_changes_few_plans(watch, container):
    watch.executed(HEARD, 0.0)
    seen = []
    for number in range(1800):
        container.names = ("sh", f"step{number}")
        watch.executed(ExecutionNews((Execution(CHILD, FIRST),), is_heard=True), container.now)
        seen += [names for _, names in run(watch, container, 1.0, step_s=0.5)]

    changes = sum(before != after for before, after in pairwise(seen))
    assert changes <= 40
    own_turns = YOUNG_S / YOUNG_GAP_S + 1800 / LONGEST_READ_REST_S
    assert len(container.reads) <= own_turns + changes  # each name that ends is read once more


def test_processes_that_are_moved_into_a_container_make_it_young_again(watch, container):
    container.born_at = -36_000.0
    run(watch, container, 5.0)
    container.names = ("mysqld",)

    watch.joined(["c", "unknown"], container.now)

    assert watch.look(container.now)


def test_the_containers_whose_turn_it_is_are_read_at_a_bounded_rate(watch, container):
    paths = [f"c{number}" for number in range(5 * MOST_READS)]
    watch.names(paths, 0.0)
    container.reads.clear()
    seconds = 10 * YOUNG_GAP_S

    while container.now < seconds:
        container.now = max(container.now + 0.2, watch.due_at())
        watch.look(container.now)

    assert MOST_READS * 9 <= len(container.reads) <= MOST_READS * 11
    assert {path for path, _ in container.reads} == set(paths)


def test_an_exec_is_read_although_the_turns_of_many_others_wait(watch, container):
    watch.names([f"c{number}" for number in range(5 * MOST_READS)], 0.0)
    container.now = YOUNG_GAP_S
    watch.look(container.now)
    watch.executed(ExecutionNews((Execution(FIRST, SHIM),)), container.now)

    assert watch.due_at() == container.now


def test_what_has_gone_is_forgotten(watch):
    watch.names(["c"], 0.0)

    assert watch.names([], 1.0) == {}
    assert watch.due_at() == math.inf
    watch.executed(ExecutionNews((Execution(FIRST, SHIM),), is_heard=True), 1.0)
