"""Threads that are born, end, execute something else, or come after one with the same tid."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.observe.kernel_side.proc_reads import (
    IDLE,
    STAYS,
    all_counts,
    counts_of,
    stat_of,
    threads_of,
    told,
    used_between,
)

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
EXECUTES = """
import os, sys, threading, time
def burn(ms):
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end: pass
def run():
    if sys.argv[1] == 'old': print('up', flush=True); sys.stdin.readline()
    burn(30)
    os.execv(sys.executable, [sys.executable, '-S', '-c',
        "import sys; print('again', flush=True); sys.stdin.read()"])
if sys.argv[1] == 'new': burn(60); print('up', flush=True); sys.stdin.readline()
other = threading.Thread(target=run)
other.start(); other.join()
"""
STORM = f"""{STAYS}
import os, sys
print('up', flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        if os.fork() == 0: sum(range(20000)); os._exit(0)
        if _ % 3 == 0: os.wait()
    try:
        while True: os.wait()
    except ChildProcessError: print('over', flush=True)
"""
BRIEF = f"""{STAYS}
import sys, threading
print('up', flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        one = threading.Thread(target=sum, args=(range(20000),)); one.start(); one.join()
    print('over', flush=True)
"""
FRESH = """
import sys, threading
print('up', flush=True); sys.stdin.readline()
def work():
    sum(range(300000)); print('worked', flush=True); threading.Event().wait()
threading.Thread(target=work, daemon=True).start(); sys.stdin.read()
"""


def rows_of(pid, rows):
    return {row.tid: row for row in rows.rows if row.tgid == pid}


def test_a_new_thread_is_told_with_all_it_used_since_its_birth(watched, spawn, tell, settle):
    child = spawn(FRESH)
    settle(child.pid)
    watched()
    tell(child)
    settle(child.pid)

    rows = rows_of(child.pid, watched())

    [new] = [tid for tid in rows if tid != child.pid]
    assert told(rows[new]) == counts_of(child.pid, new)


def test_a_new_process_is_told_with_all_it_used_since_its_birth(watched, spawn, settle):
    watched()
    child = spawn(IDLE)
    settle(child.pid)

    rows = rows_of(child.pid, watched())

    assert told(rows[child.pid]) == counts_of(child.pid)


def test_who_comes_and_goes_between_two_looks_is_not_seen(
    watched, spawn_in, tell, settle, wait_until
):
    child, path = spawn_in(BRIEF)
    watched()
    before = all_counts(child.pid)
    tell(child, "50")
    wait_until(lambda: threads_of(child.pid) == [child.pid])
    settle(child.pid)

    rows = watched()

    used = used_between(before, all_counts(child.pid))
    assert {tid: told(row) for tid, row in rows_of(child.pid, rows).items()} == used
    assert (list(used), rows.threads_by_cgroup[path]) == ([child.pid], 1)


@pytest.mark.usefixtures("load")
def test_a_storm_of_forks_disturbs_nothing(watched, spawn_in, settle):
    child, path = spawn_in(STORM)
    watched()
    before = all_counts(child.pid)
    child.stdin.write("300\n")
    child.stdin.flush()
    looks = [watched() for _ in range(40)]
    assert child.stdout.readline() == "over\n"
    settle(child.pid)
    looks.append(watched())

    mine = [told(row) for rows in looks for row in rows.rows if row.tid == child.pid]
    used = used_between(before, all_counts(child.pid))[child.pid]
    assert [sum(column) for column in zip(*mine, strict=True)] == list(used)
    assert looks[-1].threads_by_cgroup[path] == 1
    assert {rows.defects for rows in looks} == {()}
    assert all(rows.threads_seen == sum(rows.threads_by_cgroup.values()) for rows in looks)


@pytest.mark.parametrize("age", ["old", "new"])
def test_a_thread_that_executes_keeps_what_it_used(watched, spawn, tell, settle, age):
    child = spawn(EXECUTES, age)
    settle(child.pid)
    watched()
    before = all_counts(child.pid)
    executes = next((tid for tid in before if tid != child.pid), None)
    assert tell(child) == "again"
    settle(child.pid)

    rows = rows_of(child.pid, watched())

    # It took over its leader's tid and its age; the counters are its own.
    used = used_between(
        {child.pid: before.get(executes)} if executes else {}, all_counts(child.pid)
    )
    assert {tid: told(row) for tid, row in rows.items()} == used
    assert rows[child.pid].start_ticks == int(stat_of(child.pid)[19])
    assert used[child.pid].run_ns > 30_000_000


def test_who_has_the_tid_of_one_that_ended_is_another(watched, settle):
    watched()
    for _ in range(200):
        first = start(IDLE)
        settle(first.pid)
        watched()
        end(first)
        second = start(IDLE, tid=first.pid)
        settle(second.pid)
        rows = rows_of(second.pid, watched())
        used = counts_of(second.pid)
        end(second)
        if second.pid == first.pid:
            break
    else:
        pytest.skip("others took the tid each time")

    assert told(rows[first.pid]) == used


def start(script, *, tid=None):
    if tid is not None:
        try:
            LAST_PID.write_text(str(tid - 1))
        except OSError as error:
            pytest.skip(f"cannot choose a tid here: {error}")
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child.stdout.readline()
    return child


def end(child):
    child.kill()
    child.communicate()


def test_a_thread_is_told_in_the_cgroup_it_lives_in_now(watched, spawn_in, make_cgroup, settle):
    child, path = spawn_in(IDLE)
    moved = make_cgroup("moved")
    before = watched().threads_by_cgroup[path]
    (moved / "cgroup.procs").write_text(str(child.pid))
    settle(child.pid)

    living = watched().threads_by_cgroup

    assert before == 1
    assert (living.get(path, 0), living[f"{moved.parent.name}/moved/"]) == (0, 1)


def test_a_new_baseline_forgets_the_window_before(watched, reader, spawn, tell, settle):
    child = spawn(FRESH)
    watched()
    tell(child)
    settle(child.pid)

    base = reader.snapshot(0)

    assert (base.rows, base.rest) == ((), {})
    assert rows_of(child.pid, watched()) == {}


def test_our_own_thread_is_seen_as_any_other(watched):
    watched()

    rows = rows_of(os.getpid(), watched())

    assert rows[os.getpid()].run_ns > 0
