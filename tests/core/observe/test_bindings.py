import os

import pytest

from temper_core.observe.bindings import POLICIES, TRUSTED_LOOKS, Affinities
from temper_core.observe.thread_rows import ThreadRow

CPUS = os.cpu_count()


def row(tid, allowed, start=1):
    return ThreadRow(tid, tid, "t", "t", start, 0, 1, 0, False, 0, "/", allowed=allowed)


@pytest.fixture
def bound():
    """Bind the calling thread to one CPU for the time of the test."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield min(before)
    os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("number", "name"),
    [(os.SCHED_OTHER, "other"), (os.SCHED_FIFO, "fifo"), (os.SCHED_RR, "rr"),
     (os.SCHED_BATCH, "batch"), (os.SCHED_IDLE, "idle"), (6, "deadline"), (7, "ext"), (-1, "")],
)  # fmt: skip
def test_policies_have_the_names_of_sched_7(number, name):
    assert POLICIES.get(number, "") == name


def test_a_bound_threads_cpus_are_the_kernels(bound):
    affinities = Affinities()
    affinities.begin()

    assert affinities.of(row(os.getpid(), 1), max(2, CPUS)) == (bound,)


def test_a_thread_that_may_use_all_is_not_asked_about():
    affinities = Affinities()
    affinities.begin()

    assert affinities.of(row(os.getpid(), CPUS), CPUS) == ()
    assert affinities.of(row(os.getpid(), 0), CPUS) == ()


def test_what_is_known_is_asked_again_when_the_number_of_cpus_changes(bound):
    affinities = Affinities()
    affinities.begin()
    first = affinities.of(row(os.getpid(), 1), CPUS + 4)
    os.sched_setaffinity(0, range(CPUS))

    same = affinities.of(row(os.getpid(), 1), CPUS + 4)
    other = affinities.of(row(os.getpid(), CPUS), CPUS + 4)

    assert first == same == (bound,)
    assert other == tuple(sorted(os.sched_getaffinity(0)))


@pytest.mark.usefixtures("bound")
def test_what_is_known_is_believed_for_some_looks_only():
    affinities = Affinities()
    affinities.begin()
    affinities.of(row(os.getpid(), 1), CPUS + 4)
    os.sched_setaffinity(0, range(CPUS))

    for _ in range(TRUSTED_LOOKS):
        affinities.begin()

    assert affinities.of(row(os.getpid(), 1), CPUS + 4) == tuple(sorted(os.sched_getaffinity(0)))


@pytest.mark.usefixtures("bound")
def test_a_reused_tid_is_another_thread():
    affinities = Affinities()
    affinities.begin()
    affinities.of(row(os.getpid(), 1, start=1), CPUS + 4)
    os.sched_setaffinity(0, range(CPUS))

    assert len(affinities.of(row(os.getpid(), 1, start=2), CPUS + 4)) == CPUS


def test_a_thread_that_has_ended_is_bound_to_nothing():
    affinities = Affinities()
    affinities.begin()
    gone = 2**22  # above any that the kernel gives

    assert affinities.of(row(gone, 1), CPUS + 4) == ()


def test_in_another_pid_namespace_nothing_is_asked_and_that_is_said(tmp_path):
    affinities = Affinities(tmp_path)
    affinities.begin()

    assert affinities.of(row(os.getpid(), 1), CPUS + 4) == ()
    assert "hostPID" in affinities.defect
    affinities.begin()
    assert affinities.defect == ""
