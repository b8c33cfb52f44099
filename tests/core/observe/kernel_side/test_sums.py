"""What has no row of its own is summed up by cgroup, and nothing of it is lost."""

import os
import signal
from operator import attrgetter
from pathlib import Path

import pytest

from tests.core.observe.kernel_side.proc_reads import (
    STAYS,
    WORKERS,
    Counts,
    all_counts,
    threads_of,
    told,
    total,
    used_between,
)

DETAIL = 16
SCHEDSTAT = ("run_ns", "delay_ns", "runs")
MOST_THREADS = 1_500
"""More than there is room for among the candidates; test_many_threads.py has more of them."""
CROWD = f"""{STAYS}
import ctypes, sys, threading
library, attributes = ctypes.CDLL(None), ctypes.create_string_buffer(64)
library.pthread_attr_init(attributes)
library.pthread_attr_setstacksize(attributes, ctypes.c_size_t(131072))
one = ctypes.c_ulong()
pause = ctypes.cast(library.pause, ctypes.c_void_p)
for _ in range(int(sys.argv[1])):
    if library.pthread_create(ctypes.byref(one), attributes, pause, None): sys.exit('no thread')
print('up', flush=True)
sys.stdin.read()
"""
"""Threads that only pause; stopped and continued, all of them have to run for a moment."""


@pytest.fixture
def few_rows(open_tier):
    return open_tier(DETAIL)


def in_cgroup(rows, path):
    """Add up the rows and the rest of a cgroup, and count the threads in both."""
    mine = [row for row in rows.rows if row.cgroup == path]
    rest = [rows.rest[path]] if path in rows.rest else []
    counted = len(mine) + sum(sums.threads for sums in rest)
    return total(told(each) for each in [*mine, *rest]), counted


@pytest.mark.usefixtures("load")
def test_rows_and_rest_of_a_cgroup_are_what_its_threads_used(few_rows, spawn_in, tell, settle):
    child, path = spawn_in(WORKERS, 60)
    base = few_rows.snapshot(0)
    before = all_counts(child.pid)
    tell(child, "0.1 0.05")
    settle(child.pid)

    rows = few_rows.snapshot(base.clock_ns)

    used = used_between(before, all_counts(child.pid))
    assert in_cgroup(rows, path) == (total(used.values()), len(used))
    assert len(used) == 61
    assert len(rows.rows) <= DETAIL
    assert rows.rest[path].threads >= 61 - DETAIL


@pytest.mark.usefixtures("load")
def test_rows_go_to_the_busiest_and_longest_waiting(few_rows, spawn_in, tell, settle):
    child, path = spawn_in(WORKERS, 60)
    base = few_rows.snapshot(0)
    before = all_counts(child.pid)
    tell(child, "0.1 0.05")
    settle(child.pid)

    rows = few_rows.snapshot(base.clock_ns)

    assert_the_busiest_have_rows(rows, used_between(before, all_counts(child.pid)))
    assert rows.threads_by_cgroup[path] == 61


def assert_the_busiest_have_rows(rows, used):
    """Threads of one owner compete with each other, so that the first of each octave have rows."""
    listed = {row.tid for row in rows.rows} & used.keys()
    assert rows.least_ns > 0
    assert all(max(row.run_ns, row.delay_ns, row.waiting_ns) >= rows.least_ns for row in rows.rows)
    for of in (attrgetter("run_ns"), attrgetter("delay_ns")):
        most = max(map(of, used.values()))
        # Threads within a quarter of an octave of the least may be listed or not.
        if most / 2 > rows.least_ns * 1.25:
            assert max(of(used[tid]) for tid in listed) >= most / 2


@pytest.mark.usefixtures("load")
def test_who_used_less_of_the_time_than_was_asked_for_is_in_the_sums_alone(
    open_tier, spawn_in, tell, settle
):
    reader = open_tier(least_ratio=100.0)
    child, path = spawn_in(WORKERS, 12)
    base = reader.snapshot(0)
    before = all_counts(child.pid)
    tell(child, "0.1 0.05")
    settle(child.pid)

    rows = reader.snapshot(base.clock_ns)

    used = used_between(before, all_counts(child.pid))
    assert [row for row in rows.rows if row.tgid == child.pid] == []
    assert in_cgroup(rows, path) == (total(used.values()), 13)
    assert rows.least_ns > 0


def test_whoever_ran_has_a_row_while_there_are_few(open_tier, spawn_in, tell, settle):
    reader = open_tier()
    child, path = spawn_in(WORKERS, 20)
    base = reader.snapshot(0)
    tell(child, "0.05 0.02")
    settle(child.pid)

    rows = reader.snapshot(base.clock_ns)

    assert rows.least_ns == 0
    assert len([row for row in rows.rows if row.cgroup == path]) == 21
    assert path not in rows.rest


@pytest.fixture
def rouse(settle):
    """Have every thread of a process run for a moment, and rest again."""

    def stop_and_go(pid):
        os.kill(pid, signal.SIGSTOP)
        settle(pid)
        os.kill(pid, signal.SIGCONT)
        settle(pid)

    return stop_and_go


def schedstats(pid):
    """Read what of the counters one file per thread tells."""
    read = {}
    for tid in threads_of(pid):
        run, delay, runs = Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()
        read[tid] = Counts(int(run), int(delay), int(runs), 0, 0, 0)
    return read


def test_a_rush_of_threads_is_summed_up_but_for_the_busiest(few_rows, spawn_in, rouse):
    child, path = spawn_in(CROWD, 400)
    base = few_rows.snapshot(0)
    before = schedstats(child.pid)
    rouse(child.pid)

    rows = few_rows.snapshot(base.clock_ns)

    assert_all_is_told(rows, path, used_between(before, schedstats(child.pid)))
    assert len(rows.rows) <= DETAIL
    assert rows.defects == ()


def assert_all_is_told(rows, path, used):
    sums, counted = in_cgroup(rows, path)
    expected = total(used.values())
    assert counted == len(used) == rows.threads_by_cgroup[path]
    assert [sums[name] for name in SCHEDSTAT] == [expected[name] for name in SCHEDSTAT]


def test_cgroups_without_room_of_their_own_are_counted_together(open_tier, spawn_in, tell, settle):
    class Cramped(open_tier.kind):
        most_groups = 2

    reader = open_tier(DETAIL, kind=Cramped)
    child, _ = spawn_in(WORKERS, 60)
    base = reader.snapshot(0)
    before = all_counts(child.pid)
    tell(child, "0.1 0.05")
    settle(child.pid)

    rows = reader.snapshot(base.clock_ns)

    used = used_between(before, all_counts(child.pid))
    run_ns = sum(each.run_ns for each in [*rows.rest.values(), *rows.rows])
    assert list(rows.threads_by_cgroup) == ["/", ""]
    assert sum(rows.threads_by_cgroup.values()) == rows.threads_seen
    assert run_ns >= sum(counts.run_ns for counts in used.values())
    [said] = rows.defects
    beside = rows.threads_by_cgroup[""]
    assert said.startswith(
        f"threads: {beside} are counted outside of pods, since more than 1 cgroups have"
    )


def test_all_threads_that_live_are_counted_where_they_live(reader, spawn_in):
    pairs = [spawn_in(WORKERS, count, name=f"of-{count}") for count in (3, 7)]

    living = reader.snapshot(0).threads_by_cgroup

    assert [living[path] for _, path in pairs] == [4, 8]


def most_that_fit():
    """How many threads this machine can bear beside what it does, and what limits them."""
    available = int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) // 200
    numbers = int(Path("/proc/sys/kernel/pid_max").read_text()) // 2
    in_all = int(Path("/proc/sys/kernel/threads-max").read_text()) // 2
    maps = int(Path("/proc/sys/vm/max_map_count").read_text()) // 3
    limits = {"memory": available, "pid_max": numbers, "threads-max": in_all, "max_map_count": maps}
    tightest = min(limits, key=limits.get)
    return min(MOST_THREADS, limits[tightest]), tightest


def test_more_threads_than_can_be_candidates_are_all_counted_and_summed_up(
    open_tier, spawn_in, rouse
):
    count, limit = most_that_fit()
    reader = open_tier(256)
    child, path = spawn_in(CROWD, count)
    base = reader.snapshot(0)
    before = schedstats(child.pid)
    rouse(child.pid)

    rows = reader.snapshot(base.clock_ns)

    assert rows.threads_by_cgroup[path] == count + 1, f"only {count} threads, because of {limit}"
    used = used_between(before, schedstats(child.pid))
    assert_all_is_told(rows, path, used)
    listed = {row.tid for row in rows.rows} & used.keys()
    for of in (attrgetter("run_ns"), attrgetter("delay_ns")):
        assert max(of(used[tid]) for tid in listed) >= max(map(of, used.values())) / 2
    assert len(rows.rows) <= 256
