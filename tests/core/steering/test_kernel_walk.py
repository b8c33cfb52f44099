"""The walk over all threads of this machine: what it corrects, and what it tells."""

import os
import sys
import threading
from pathlib import Path

import pytest

from temper_core.bpf import maps
from temper_core.records.steering import FIXED_HINTS, NO_HINT, SYSTEM
from temper_core.steering.kernel import KernelRule, SteeringKernel
from tests.core.steering.processes import DEFAULT, STAYS, named, number, until


def test_threads_that_were_there_before_get_their_hints(kernel, thread, look):
    kernel.set_table({}, (), DEFAULT)
    before = look(thread)

    walked = kernel.walk()

    assert (before.expected, before.hint, look(thread).hint) == (DEFAULT, NO_HINT, DEFAULT)
    assert walked.written > 0
    assert walked.corrected == 0
    assert {r.hint for r in kernel.records() if not r.is_kernel} == {DEFAULT}


def test_a_second_walk_finds_nothing_to_do(kernel, look, thread):
    kernel.set_table({}, (), DEFAULT)
    kernel.walk()

    walked = kernel.walk()

    assert (walked.written, walked.corrected) == (0, 0)
    assert look(thread).hint == DEFAULT


def test_a_walk_that_may_not_write_only_tells(kernel, thread):
    kernel.set_table({}, (), DEFAULT)

    walked = [kernel.walk(write=False) for _ in range(2)]

    found = next(record for record in kernel.records() if record.tid == thread)
    assert [each.written for each in walked] == [0, 0]
    assert (found.expected, found.hint) == (DEFAULT, NO_HINT)


def test_threads_of_the_kernel_are_never_steered(kernel):
    kernel.set_table({}, (KernelRule(50),), DEFAULT)

    kernel.walk()

    found = [record for record in kernel.records() if record.is_kernel]
    assert "kthreadd" in {record.comm for record in found}
    assert {(record.expected, record.hint) for record in found} == {(NO_HINT, NO_HINT)}


def test_no_thread_is_touched_before_there_is_a_table(kernel, thread, rename, look):
    rename(thread, "vip")

    walked = kernel.walk()

    assert (walked.written, look(thread).hint, look(thread).expected) == (0, NO_HINT, NO_HINT)


@pytest.mark.parametrize("hint", [0, 7, 1_000, 99_999, 2**64 - 1])
def test_a_hint_that_somebody_changed_is_put_right_and_counted(kernel, spawn, look, poison, hint):
    kernel.set_table({}, (), DEFAULT)
    pid = named(spawn(*STAYS))
    kernel.walk()
    poison(pid, hint)
    poisoned = look(pid)

    walked = kernel.walk()

    assert (poisoned.hint, look(pid).hint) == (min(hint, NO_HINT - 1), DEFAULT)
    assert (walked.written, walked.corrected) == (1, 1)


def test_what_a_new_table_changes_was_nobodys_doing(kernel, thread, look):
    kernel.set_table({}, (), DEFAULT)
    kernel.walk()

    kernel.set_table({}, (), 3)
    walked = kernel.walk()

    assert (look(thread).hint, walked.corrected) == (3, 0)
    assert walked.written > 0


def kthreadd(kernel):
    kernel.walk(write=False)
    return next(record.tid for record in kernel.records() if record.comm == "kthreadd")


def test_a_hint_on_a_thread_of_the_kernel_becomes_that_of_the_system(kernel, look, poison):
    kernel.set_table({}, (), DEFAULT)
    kernel.walk()
    pid = kthreadd(kernel)
    poison(pid, 7)

    walked, again = kernel.walk(), kernel.walk()

    assert (walked.written, walked.corrected, again.corrected) == (1, 1, 0)
    assert (look(pid).hint, look(pid).is_kernel) == (FIXED_HINTS[SYSTEM], True)


def test_before_there_is_a_table_no_thread_of_the_kernel_is_touched(kernel, look, poison):
    pid = kthreadd(kernel)
    poison(pid, 7)

    walked = kernel.walk()

    assert (walked.written, look(pid).hint) == (0, 7)


def test_a_record_is_what_proc_says(spawn, look, unified):
    pid = named(spawn(*STAYS, cgroup=unified))

    until(lambda: look(pid).run_ns == int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]))

    record = look(pid)
    started = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    assert record.start_ns * os.sysconf("SC_CLK_TCK") // 1_000_000_000 == started
    assert (record.tgid, record.comm, record.cgroup_id) == (pid, "sleep", number(unified))
    assert (record.is_leader, record.is_kernel, record.layer) == (True, False, None)


def test_who_walks_is_running_and_who_sleeps_is_not(thread, look):
    until(lambda: not look(thread).is_runnable)

    assert look(threading.get_native_id()).is_runnable


def test_every_thread_of_this_process_is_found(kernel, thread):
    kernel.walk()

    found = {record.tid for record in kernel.records() if record.tgid == os.getpid()}
    assert thread in found
    assert found == {int(task.name) for task in Path("/proc/self/task").iterdir()}


def test_records_stay_as_they_were_while_others_are_made(kernel):
    kernel.walk()
    first, pending = list(kernel.records()), kernel.records()

    kernel.set_table({}, (), DEFAULT)
    kernel.walk()

    assert list(pending) == first


@pytest.mark.usefixtures("bpf_allowed")
def test_each_walk_records_the_threads_that_the_last_one_had_no_room_for():
    """One pod could fill all records of a walk, and hide the later threads of others."""
    with SteeringKernel.open(threads=16) as kernel:
        kernel.set_table({}, (), DEFAULT)
        found, walks = set(), 0
        while threading.get_native_id() not in found and walks < 10_000:
            walked = kernel.walk()
            found.update(record.tid for record in kernel.records())
            walks += 1

        assert walks > 1
        assert walks <= walked.seen / 16 + 2


@pytest.mark.usefixtures("bpf_allowed")
def test_threads_without_room_among_the_records_are_counted_and_steered(thread):
    with SteeringKernel.open(threads=4) as kernel:
        kernel.set_table({}, (), DEFAULT)
        walked = kernel.walk()

        assert len(list(kernel.records())) == 4
        assert walked.dropped == walked.seen - 4 > 0
        hints, own = maps.open_by_id(kernel.map_id), os.pidfd_open(os.getpid())
        found = maps.lookup(hints, own.to_bytes(4, sys.byteorder), 32)
        os.close(hints)
        os.close(own)
    assert found == DEFAULT.to_bytes(32, "little")
    assert thread
