"""Decisions of user space: whom they reach, and when they end."""

import os
from subprocess import PIPE

import pytest

from temper_core.records.steering import NO_HINT
from temper_core.steering.kernel import HintOutcomes, KernelRule, Policy
from tests.core.steering.processes import DEFAULT, STAYS, named, number

DECIDED = 200


@pytest.fixture
def decide(kernel, look):
    """Decide for one thread, which is named by its start as well."""
    return lambda tid, hint=DECIDED: kernel.decide([(tid, look(tid).start_ns, hint)])


@pytest.fixture
def pod(kernel, make_cgroup):
    """A cgroup whose threads belong to 40 by the table."""
    folder = make_cgroup("pod")
    kernel.set_table({number(folder): Policy((), 40)}, (), DEFAULT)
    return folder


def test_a_decision_outranks_the_table_through_walks(kernel, thread, look, decide):
    kernel.set_table({}, (), DEFAULT)

    decided = decide(thread)
    walked = [kernel.walk(), kernel.walk()]

    found = look(thread)
    assert decided == HintOutcomes(applied=1)
    assert (found.hint, found.expected, found.is_decided) == (DECIDED, DECIDED, True)
    assert [each.corrected for each in walked] == [0, 0]


def test_a_decision_may_be_changed(kernel, thread, look, decide):
    kernel.set_table({}, (), DEFAULT)
    decide(thread)

    decide(thread, 201)
    kernel.walk()

    assert (look(thread).hint, look(thread).is_decided) == (201, True)


def test_a_decision_ends_when_the_thread_is_renamed(kernel, thread, rename, look, decide):
    kernel.set_table({}, (KernelRule(50, comm="vip"),), DEFAULT)
    decide(thread)

    rename(thread, "vip")

    assert (look(thread).hint, look(thread).is_decided) == (50, False)


def test_a_decision_ends_when_the_thread_executes_another_program(kernel, spawn, look, decide):
    kernel.set_table({}, (), DEFAULT)
    process = spawn("/bin/sh", "-c", "read line; exec sleep 600", stdin=PIPE)
    decide(process.pid)

    process.stdin.write(b"\n")
    process.stdin.close()

    assert look(named(process)).hint == DEFAULT


def test_a_decision_ends_for_good_when_the_thread_changes_its_cgroup(
    pod, make_cgroup, spawn, look, decide
):
    other, pid = make_cgroup("other"), named(spawn(*STAYS, cgroup=pod))
    decide(pid)

    hints = []
    for folder in (other, pod):
        (folder / "cgroup.procs").write_text(str(pid))
        hints.append(look(pid).hint)

    assert hints == [DEFAULT, 40]
    assert not look(pid).is_decided


def test_a_decision_outlives_a_move_that_leads_nowhere(pod, spawn, look, decide):
    pid = named(spawn(*STAYS, cgroup=pod))
    decide(pid)

    (pod / "cgroup.procs").write_text(str(pid))

    assert (look(pid).hint, look(pid).is_decided) == (DECIDED, True)


def test_children_do_not_inherit_a_decision(kernel, spawn, look, decide):
    kernel.set_table({}, (), DEFAULT)
    parent = spawn("/bin/sh", "-c", "read line; sleep 600 & echo $!; wait", stdin=PIPE, stdout=PIPE)
    decide(parent.pid)

    parent.stdin.write(b"\n")
    parent.stdin.flush()
    child = int(parent.stdout.readline())

    found = look(child)
    os.kill(child, 9)
    assert (found.hint, found.is_decided) == (DEFAULT, False)


def test_no_earlier_decision_counts_after_a_bump(kernel, thread, look, decide):
    kernel.set_table({}, (), DEFAULT)
    decide(thread)

    kernel.set_table({}, (), DEFAULT, bump=True)
    walked = kernel.walk()

    assert (look(thread).hint, walked.corrected) == (DEFAULT, 0)
    decide(thread)
    assert look(thread).hint == DECIDED


def test_a_new_table_alone_ends_no_decision(kernel, thread, look, decide):
    kernel.set_table({}, (), DEFAULT)
    decide(thread)

    kernel.set_table({}, (), 3)
    kernel.walk()

    assert look(thread).hint == DECIDED


def test_a_thread_can_be_given_back_to_the_table(kernel, thread, look, decide):
    kernel.set_table({}, (), DEFAULT)
    decide(thread)

    decide(thread, NO_HINT)

    assert (look(thread).hint, look(thread).is_decided) == (DEFAULT, False)


def test_a_tid_that_somebody_else_has_by_now_is_left_alone(kernel, thread, look):
    kernel.set_table({}, (), DEFAULT)
    kernel.walk()

    decided = kernel.decide([(thread, look(thread).start_ns - 1, DECIDED)])

    assert decided == HintOutcomes(reused=1)
    assert look(thread).hint == DEFAULT


def test_a_thread_that_has_ended_is_counted_as_gone(kernel, spawn, look):
    process = spawn("true")
    record = look(process.pid)
    process.wait()

    decided = kernel.decide([(process.pid, record.start_ns, DECIDED), (2**31 - 1, 0, DECIDED)])

    assert decided == HintOutcomes(gone=2)


def test_no_thread_of_the_kernel_is_decided_for(kernel, look):
    kernel.walk()
    record = next(record for record in kernel.records() if record.comm == "kthreadd")

    decided = kernel.decide([(record.tid, record.start_ns, DECIDED)])

    assert decided == HintOutcomes(gone=1)
    assert look(record.tid).hint == NO_HINT


def test_more_decisions_than_fit_into_one_call_are_made_in_several(kernel, thread, look):
    start_ns = look(thread).start_ns

    decided = kernel.decide((thread, start_ns, 100 + n % 7) for n in range(10_000))

    assert decided == HintOutcomes(applied=10_000)
    assert look(thread).hint == 100 + 9_999 % 7


def test_nothing_to_decide_is_nothing_done(kernel):
    assert kernel.decide([]) == HintOutcomes()
