"""The numbers of a row, against independent reads of /proc on a busy machine."""

import os
import signal
import time
from pathlib import Path

import pytest

from temper_core.observe.process_text import TICKS_PER_S
from temper_core.observe.threads import ProcThreads
from tests.core.observe.kernel_side.proc_reads import (
    BUSY,
    IDLE,
    WORKERS,
    Counts,
    all_counts,
    counts_of,
    stat_of,
    told,
    total,
    used_between,
)

MS = 1_000_000
SLACK_NS = 20 * MS
"""By how much a wait may exceed a window without being taken for sleep."""
NAPS = "import time; print('up', flush=True)\nwhile True: time.sleep(0.003)"
YIELDS = "import os; print('up', flush=True)\nwhile True: sum(range(90000)); os.sched_yield()"
AS_SOMEBODY = f"import os; os.setresuid(65534, 1234, 0)\n{BUSY}"


def rows_of(pid, rows):
    return {row.tid: row for row in rows.rows if row.tgid == pid}


def test_the_first_look_is_a_baseline_without_rows(reader):
    rows = reader.snapshot(0)

    assert (rows.rows, rows.rest, rows.defects) == ((), {}, ())
    assert rows.threads_seen == sum(rows.threads_by_cgroup.values())
    assert rows.threads_seen > 1
    assert rows.clock_ns > 0
    assert rows.kernel_ns > 0


@pytest.mark.usefixtures("load")
def test_a_busy_threads_counters_lie_between_independent_reads(reader, spawn, let_run):
    child = spawn(BUSY)
    outer_before = counts_of(child.pid)
    base = reader.snapshot(0)
    inner_before = counts_of(child.pid)
    let_run(child.pid)

    inner_after = counts_of(child.pid)
    rows = reader.snapshot(base.clock_ns)
    outer_after = counts_of(child.pid)

    found = told(rows_of(child.pid, rows)[child.pid])
    for name in Counts._fields:
        least = getattr(inner_after, name) - getattr(inner_before, name)
        most = getattr(outer_after, name) - getattr(outer_before, name)
        assert least <= getattr(found, name) <= most, name
    assert found.run_ns > 0


@pytest.mark.usefixtures("load")
def test_threads_that_have_come_to_rest_are_told_to_the_nanosecond(watched, spawn, tell, settle):
    child = spawn(WORKERS, 12)
    settle(child.pid)
    watched()
    before = all_counts(child.pid)
    tell(child, "0.2 0.3")
    settle(child.pid)

    rows = rows_of(child.pid, watched())

    used = used_between(before, all_counts(child.pid))
    assert len(used) == 13
    assert rows.keys() == used.keys()
    for tid, row in rows.items():
        assert told(row) == used[tid]


@pytest.mark.usefixtures("load")
def test_no_counts_are_lost_or_told_twice_over_many_looks(watched, spawn, settle):
    pids = [spawn(script).pid for script in (BUSY, NAPS, YIELDS)]
    stop(pids, settle)
    before = {pid: counts_of(pid) for pid in pids}
    watched()

    found = {pid: [] for pid in pids}
    for place in range(30):
        # Now and then one leaves its CPU for good, without being given one again.
        for pid in pids:
            os.kill(pid, signal.SIGSTOP if (place + pid) % 4 == 0 else signal.SIGCONT)
        time.sleep(0.004 * (place % 6))
        note_rows(watched(), found)
    stop(pids, settle)
    note_rows(watched(), found)

    for pid in pids:
        used = used_between({pid: before[pid]}, {pid: counts_of(pid)})[pid]
        assert total(found[pid]) == total([used])


def test_what_a_thread_ran_after_a_look_that_found_it_running_is_told(watched, spawn, settle):
    child = spawn(BUSY)
    stop([child.pid], settle)
    os.sched_setaffinity(child.pid, {max(os.sched_getaffinity(child.pid))})
    os.sched_setscheduler(child.pid, os.SCHED_FIFO, os.sched_param(1))
    before = counts_of(child.pid)
    watched()

    # A real-time thread is given the CPU once, and keeps it until it is stopped.
    os.kill(child.pid, signal.SIGCONT)
    time.sleep(0.04)
    first = watched()
    time.sleep(0.04)
    stop([child.pid], settle)
    found = {child.pid: []}
    for rows in (first, watched()):
        note_rows(rows, found)

    used = used_between({child.pid: before}, {child.pid: counts_of(child.pid)})
    assert total(found[child.pid]) == total(used.values())
    assert len(found[child.pid]) == 2


def stop(pids, settle):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        settle(pid)


def note_rows(rows, found):
    for row in rows.rows:
        if row.tid in found:
            found[row.tid].append(told(row))


def test_a_row_says_what_the_other_files_of_the_thread_say(watched, spawn, let_run):
    child = spawn(BUSY)
    os.sched_setaffinity(child.pid, {max(os.sched_getaffinity(child.pid))})
    os.setpriority(os.PRIO_PROCESS, child.pid, 7)
    os.sched_setscheduler(child.pid, os.SCHED_BATCH, os.sched_param(0))
    watched()
    let_run(child.pid)

    row = rows_of(child.pid, watched())[child.pid]

    stat = stat_of(child.pid)
    comm = Path(f"/proc/{child.pid}/comm").read_text().removesuffix("\n")
    assert (row.tid, row.tgid, row.comm, row.process) == (child.pid, child.pid, comm, comm)
    assert (row.nice, row.start_ticks) == (7, int(stat[19]))
    assert (row.rt_priority, row.policy) == (int(stat[37]), int(stat[38])) == (0, os.SCHED_BATCH)
    assert {row.cpu} == os.sched_getaffinity(child.pid)
    assert (row.allowed, row.is_kthread, row.uid) == (1, False, os.geteuid())


def test_a_real_time_thread_is_told_with_its_priority(watched, spawn, tell, settle):
    child = spawn(WORKERS, 1)
    os.sched_setscheduler(child.pid, os.SCHED_RR, os.sched_param(3))
    settle(child.pid)
    watched()
    tell(child, "1 0")

    rows = rows_of(child.pid, watched())

    assert (rows[child.pid].policy, rows[child.pid].rt_priority) == (os.SCHED_RR, 3)
    others = [(row.policy, row.rt_priority) for tid, row in rows.items() if tid != child.pid]
    assert others == [(os.SCHED_OTHER, 0)]


def test_a_thread_belongs_to_whom_it_acts_for(watched, spawn, let_run):
    child = spawn(AS_SOMEBODY)
    watched()
    let_run(child.pid)

    assert rows_of(child.pid, watched())[child.pid].uid == 1234


def test_threads_have_names_of_their_own_and_their_leaders(watched, spawn, tell):
    child = spawn(
        "import sys, threading\n"
        "def name(comm): open('/proc/thread-self/comm', 'wb').write(comm)\n"
        "def work():\n"
        "  name(b'\\xff odd) (\\xc3')\n"
        "  print('worked', flush=True); threading.Event().wait()\n"
        "name('führer'.encode()); print('up', flush=True); sys.stdin.readline()\n"
        "threading.Thread(target=work, daemon=True).start(); sys.stdin.read()"
    )
    watched()
    tell(child)

    rows = rows_of(child.pid, watched())

    assert {row.process for row in rows.values()} == {"führer"}
    assert {row.comm for row in rows.values()} == {"führer", "\ufffd odd) (\ufffd"}


def test_both_sides_spell_and_describe_a_thread_alike(watched, wait_until, spawn):
    child = spawn(NAPS)
    by_proc = ProcThreads()
    base = by_proc.snapshot(0)
    watched()
    pairs = {}

    def several_kernel_threads_have_run():
        mine = {(row.tid, row.start_ticks): row for row in watched().rows}
        for row in by_proc.snapshot(base.clock_ns).rows:
            found = mine.get((row.tid, row.start_ticks))
            # Whoever else there is may change its name or its cgroup between the two looks.
            if found is not None and (row.is_kthread or row.tgid == child.pid):
                pairs[row.tid] = (described(found), described(row))
        return len(pairs) > 3 and child.pid in pairs

    wait_until(several_kernel_threads_have_run)
    by_proc.close()

    assert [pair for pair in pairs.values() if pair[0] != pair[1]] == []


def described(row):
    return (row.tgid, row.comm, row.process, row.is_kthread, row.uid, row.cgroup)


def test_a_thread_that_waits_for_a_cpu_is_told_so(watched, spawn, wait_until):
    waits = spawn(BUSY).pid
    keep_waiting(waits, spawn(BUSY).pid)
    found = []

    def is_told_to_wait():
        before = counts_of(waits).delay_ns
        row = rows_of(waits, watched()).get(waits)
        if row and row.waiting_ns > 50 * MS and counts_of(waits).delay_ns == before:
            found.append((before, row))
        return bool(found)

    wait_until(is_told_to_wait)
    [(before, row)] = found
    give_cpu(waits)
    wait_until(lambda: counts_of(waits).delay_ns > before)

    # The wait it was found in counts as run delay once it is over.
    assert row.waiting_ns <= counts_of(waits).delay_ns - before
    assert row.policy == os.SCHED_IDLE


def test_a_wait_that_outlasted_many_looks_is_told_whole_when_it_ends(
    watched, spawn, settle, wait_until
):
    waits = spawn(BUSY).pid
    keep_waiting(waits, spawn(BUSY).pid)
    before = counts_of(waits)
    watched()
    rows = []

    def has_waited_for_long():
        rows.append(rows_of(waits, watched()).get(waits))
        return rows[-1] is not None and rows[-1].waiting_ns > 300 * MS

    wait_until(has_waited_for_long)
    give_cpu(waits)
    wait_until(lambda: counts_of(waits).delay_ns >= before.delay_ns + 300 * MS)
    os.kill(waits, signal.SIGSTOP)
    settle(waits)
    rows.append(rows_of(waits, watched()).get(waits))

    told_ns = [row.delay_ns for row in rows if row]
    assert max(told_ns) > 300 * MS
    # The baseline came a moment after the counters were read.
    assert sum(told_ns) <= counts_of(waits).delay_ns - before.delay_ns


def keep_waiting(pid, busy):
    """Bind both to one CPU, and let *pid* have what the other leaves over."""
    os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    for each in (pid, busy):
        os.sched_setaffinity(each, {max(os.sched_getaffinity(0))})


def give_cpu(pid):
    """End its wait: one that has to wait for all others' leavings may never have its turn."""
    os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


def test_who_was_moved_right_after_it_went_to_sleep_is_not_told_to_wait(watched, moved_asleep):
    watched()

    rows = watched()

    assert rows_of(moved_asleep.pid, rows) == {}


def test_sleep_that_the_kernel_books_as_a_wait_is_told_for_one_window_at_most(
    watched, moved_asleep, tell, settle
):
    before = all_counts(moved_asleep.pid)
    time.sleep(0.3)
    began_ns = time.monotonic_ns()
    watched()
    tell(moved_asleep)
    settle(moved_asleep.pid)

    rows = rows_of(moved_asleep.pid, watched())

    window_ns = time.monotonic_ns() - began_ns
    used = used_between(before, all_counts(moved_asleep.pid))
    assert rows.keys() == used.keys()
    for tid, row in rows.items():
        assert row.delay_ns == used[tid].delay_ns or row.delay_ns <= window_ns + SLACK_NS
        assert told(row)._replace(delay_ns=0) == used[tid]._replace(delay_ns=0)
    if max(counts.delay_ns for counts in used.values()) <= window_ns + SLACK_NS:
        pytest.skip("the kernel has booked no sleep as a wait")
    assert max(row.delay_ns for row in rows.values()) <= window_ns + SLACK_NS


def test_who_sleeps_has_neither_a_row_nor_a_part_in_sums(watched, spawn, settle):
    child = spawn(WORKERS, 5)
    settle(child.pid)
    watched()

    rows = watched()

    assert rows_of(child.pid, rows) == {}
    assert all(sums.run_ns or sums.delay_ns or sums.runs for sums in rows.rest.values())


def test_a_start_is_in_ticks_since_boot(watched, spawn):
    began = time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_S
    watched()
    child = spawn(IDLE)

    row = rows_of(child.pid, watched())[child.pid]

    assert began - 1 <= row.start_ticks <= time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_S
