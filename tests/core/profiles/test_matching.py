"""What a profile's match holds for, with all that only user space can see."""

import pytest

from temper_core.profiles.matching import matches
from temper_core.records.thread_groups import Behaviour, ThreadMatch
from temper_core.records.threads import ThreadBehaviour, ThreadIdentity


def thread(comm="any", process="main", **changes):
    return ThreadIdentity("pod/", comm, process, **changes)


@pytest.mark.parametrize(
    ("match", "taken", "left"),
    [
        (ThreadMatch(comm_prefix="io_"), thread("io_1"), thread("a_io_1")),
        (ThreadMatch(comm_prefix="a.c"), thread("a.c"), thread("abc")),
        (ThreadMatch(process="java"), thread(process="java"), thread("java", "bash")),
        (ThreadMatch(leader=True), thread(is_leader=True), thread()),
        (ThreadMatch(leader=False), thread(), thread(is_leader=True)),
        (ThreadMatch(comm_pattern="_sch"), thread("10_dirty_io_sch"), thread("dirty_io")),
        (ThreadMatch(comm_pattern=r"^\d+_sch$"), thread("9_sch"), thread("9_sche")),
        (ThreadMatch(comm_pattern="^G1 Conc#"), thread("G1 Conc#0"), thread("G1 Main")),
        (
            ThreadMatch(title_pattern="checkpointer"),
            thread(title="postgres: main: checkpointer "),
            thread("checkpointer", title="postgres: walwriter"),
        ),
        (ThreadMatch(title_pattern="x"), thread(title="x"), thread()),
        (ThreadMatch(exe="python3"), thread(exe="python3.11"), thread("python3", exe="pypy3")),
        (ThreadMatch(exe="java"), thread(exe="java"), thread(process="java")),
        (ThreadMatch(parent="tini"), thread(parent="tini"), thread(parent="sh")),
        (ThreadMatch(parent="tini"), thread(parent="tini"), thread()),
        (ThreadMatch(is_child=True), thread(is_child=True), thread(is_child=False)),
        (ThreadMatch(is_child=False), thread(is_child=False), thread(is_child=True)),
        (ThreadMatch(is_child=False), thread(is_child=False), thread()),
        (ThreadMatch(older_than_s=9.5), thread(age_s=9.5), thread(age_s=9.4)),
        (ThreadMatch(older_than_s=9.5), thread(age_s=1e9), thread()),
    ],
)
def test_each_key_takes_what_it_names_and_leaves_the_rest(match, taken, left):
    assert matches(match, taken)
    assert not matches(match, left)


@pytest.mark.parametrize(
    "changes",
    [
        {"comm": "a"},
        {"process": "a"},
        {"title": "a"},
        {"is_leader": True},
        {"exe": "a"},
        {"parent": "a"},
        {"is_child": False},
        {"age_s": 1.0},
    ],
)
def test_every_key_that_is_given_must_hold(changes):
    origin = {"exe": "mai", "parent": "sh", "is_child": True, "older_than_s": 5}
    match = ThreadMatch("io", "1$", "main", "serve", leader=False, **origin)
    good = {"comm": "io_1", "process": "main", "title": "serve", "is_leader": False}
    good |= {"exe": "main", "parent": "sh", "is_child": True, "age_s": 6.0}

    assert matches(match, thread(**good))
    assert not matches(match, thread(**{**good, **changes}))


@pytest.mark.parametrize(
    ("bounds", "seen", "holds"),
    [
        ({"cpu_share": (0.5, 1.0)}, ThreadBehaviour(cpu_share=0.5), True),
        ({"cpu_share": (0.5, 1.0)}, ThreadBehaviour(cpu_share=1.0), True),
        ({"cpu_share": (0.5, 1.0)}, ThreadBehaviour(cpu_share=0.49), False),
        ({"run_us": (0, 100)}, ThreadBehaviour(run_us=100.5), False),
        ({"run_us": (0, 100)}, ThreadBehaviour(run_us=0), True),
        ({"wakeups_per_s": (10, 20)}, ThreadBehaviour(0.1, 5, 15), True),
        ({"wakeups_per_s": (10, 20), "run_us": (1, 2)}, ThreadBehaviour(0.1, 5, 15), False),
        ({"wakeups_per_s": (10, 20)}, ThreadBehaviour(cpu_share=0.1), False),
        ({"cpu_share": (0, 1)}, None, False),
        ({}, None, True),
    ],
)
def test_a_behaviour_holds_within_its_bounds_and_only_where_it_was_measured(bounds, seen, holds):
    match = ThreadMatch(comm_prefix="a", behaviour=Behaviour(**bounds))

    assert matches(match, thread(behaviour=seen)) is holds
