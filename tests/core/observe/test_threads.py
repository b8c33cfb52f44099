"""The proc tier on the real /proc: real threads, compared with independent reads."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.threads import ProcThreads
from tests.patience import PATIENCE_S

BUSY = "print('up', flush=True)\nwhile True: pass"
IDLE = "import sys; print('up', flush=True); sys.stdin.read()"
ON_CALL = """
import sys, threading
threading.stack_size(131072)
calls = [threading.Semaphore(0) for _ in range(int(sys.argv[1]))]
def work(call):
    while call.acquire(): sum(range(20000))
for call in calls: threading.Thread(target=work, args=(call,), daemon=True).start()
print('up', flush=True)
for line in sys.stdin:
    for call in calls: call.release()
    print('called', flush=True)
"""


@pytest.fixture(params=[None, 0], ids=["kept descriptors", "opened each time"])
def reader(request):
    reader = ProcThreads(budget=DescriptorBudget(request.param))
    yield reader
    reader.close()


def schedstat(pid, tid=None):
    content = Path(f"/proc/{pid}/task/{tid or pid}/schedstat").read_text()
    return [int(field) for field in content.split()]


def has_become(pid, name):
    try:
        return Path(f"/proc/{pid}/comm").read_text() == f"{name}\n"
    except ProcessLookupError:  # its leader is just being replaced by the thread that executes
        return False


def rows_of(pid, rows):
    return [row for row in rows.rows if row.tgid == pid]


def test_the_first_look_is_a_baseline_without_rows(reader, names_in):
    rows = reader.snapshot(0)

    assert rows.rows == ()
    assert rows.threads_seen >= len(names_in("/proc/self/task"))
    assert rows.threads_seen == sum(rows.threads_by_cgroup.values())
    assert rows.clock_ns > 0


def test_a_busy_threads_deltas_lie_between_independent_reads(reader, spawn, let_run):
    child = spawn(BUSY)
    outer_before = schedstat(child.pid)
    base = reader.snapshot(0)
    inner_before = schedstat(child.pid)
    let_run(child.pid)

    inner_after = schedstat(child.pid)
    rows = reader.snapshot(base.clock_ns)
    outer_after = schedstat(child.pid)

    [row] = rows_of(child.pid, rows)
    assert inner_after[0] - inner_before[0] <= row.run_ns <= outer_after[0] - outer_before[0]
    assert inner_after[1] - inner_before[1] <= row.delay_ns <= outer_after[1] - outer_before[1]
    assert row.run_ns > 0


def test_a_row_says_what_the_other_files_of_the_process_say(reader, spawn, let_run):
    child = spawn(BUSY)
    os.sched_setaffinity(child.pid, {min(os.sched_getaffinity(child.pid))})
    let_run(child.pid)
    base = reader.snapshot(0)
    let_run(child.pid)

    [row] = rows_of(child.pid, reader.snapshot(base.clock_ns))

    comm = Path(f"/proc/{child.pid}/comm").read_text().strip()
    assert (row.tid, row.comm, row.process) == (child.pid, comm, comm)
    assert {row.cpu} == os.sched_getaffinity(child.pid)
    assert row.uid == os.geteuid()
    assert not row.is_kthread


def test_who_sleeps_is_counted_but_has_no_row(reader, spawn, settle):
    child = spawn(ON_CALL, 5)
    settle(child.pid)
    base = reader.snapshot(0)

    rows = reader.snapshot(base.clock_ns)

    assert rows_of(child.pid, rows) == []
    assert rows.threads_seen >= 6


def test_two_hundred_threads_that_wake_all_have_a_row(reader, spawn, tell, wait_until, names_in):
    child = spawn(ON_CALL, 220)
    base = reader.snapshot(0)
    tell(child)
    tids = {int(tid) for tid in names_in(f"/proc/{child.pid}/task")}
    seen, last = set(), [base]

    def all_have_run():
        last[0] = reader.snapshot(last[0].clock_ns)
        seen.update(row.tid for row in rows_of(child.pid, last[0]))
        return seen == tids

    wait_until(all_have_run, f"{len(seen)} of {len(tids)} threads were seen")
    assert len(tids) == 221


def test_a_new_thread_is_found_at_the_next_look_with_all_it_used(reader, spawn, tell):
    child = spawn(
        "import sys, threading, time\n"
        "print('up', flush=True); sys.stdin.readline()\n"
        "def work():\n"
        " sum(range(300000)); print('worked', flush=True); time.sleep(60)\n"
        "threading.Thread(target=work, daemon=True).start(); sys.stdin.read()"
    )
    base = reader.snapshot(0)
    tell(child)

    rows = rows_of(child.pid, reader.snapshot(base.clock_ns))

    [new] = [row for row in rows if row.tid != child.pid]
    assert 0 < new.run_ns <= schedstat(child.pid, new.tid)[0]


def test_a_thread_that_takes_the_place_of_another_is_found(
    reader, spawn, tell, wait_until, names_in
):
    child = spawn(
        "import sys, threading\n"
        "stop = threading.Event(); old = threading.Thread(target=stop.wait); old.start()\n"
        "print('up', flush=True); sys.stdin.readline()\n"
        "stop.set(); old.join()\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "print('done', flush=True); sys.stdin.read()"
    )
    base = reader.snapshot(0)
    before = names_in(f"/proc/{child.pid}/task")
    tell(child)
    wait_until(lambda: len(names_in(f"/proc/{child.pid}/task")) == 2)

    rows = rows_of(child.pid, reader.snapshot(base.clock_ns))

    after = {int(tid) for tid in names_in(f"/proc/{child.pid}/task")}
    assert after != {int(tid) for tid in before}
    assert after <= {row.tid for row in rows}


def test_a_thread_that_renames_itself_is_reported_by_its_new_name(reader, spawn, tell):
    child = spawn(
        "import sys\nprint('up', flush=True)\n"
        "for line in sys.stdin.buffer:\n"
        " open('/proc/self/comm', 'wb').write(line.strip()); print('named', flush=True)\n"
    )
    clock, names = reader.snapshot(0).clock_ns, []

    for name in ["a) R (b", "stage two", "()", "\N{SNOWMAN}"]:
        tell(child, name)
        rows = reader.snapshot(clock)
        clock = rows.clock_ns
        names += [(row.comm, row.process) for row in rows_of(child.pid, rows)]

    assert names == [(name, name) for name in ["a) R (b", "stage two", "()", "\N{SNOWMAN}"]]


def test_a_process_that_executes_another_program_keeps_its_thread(reader, spawn, wait_until):
    child = spawn(
        "import sys, os; print('up', flush=True); sys.stdin.readline()\n"
        "os.execvp('sleep', ['sleep', '60'])"
    )
    base = reader.snapshot(0)
    child.stdin.write("go\n")
    child.stdin.flush()
    wait_until(lambda: has_become(child.pid, "sleep"))

    [row] = rows_of(child.pid, reader.snapshot(base.clock_ns))

    assert (row.comm, row.process, row.tid) == ("sleep", "sleep", child.pid)


def test_a_thread_that_executes_takes_over_its_leader_without_a_leap(reader, spawn, wait_until):
    child = spawn(
        "import sys, os, threading\n"
        "sum(range(3000000))\n"  # the leader has used much more than its heir
        "def run(): sys.stdin.readline(); os.execvp('sleep', ['sleep', '60'])\n"
        "threading.Thread(target=run).start(); print('up', flush=True)"
    )
    base = reader.snapshot(0)
    child.stdin.write("go\n")
    child.stdin.flush()
    wait_until(lambda: has_become(child.pid, "sleep"))

    rows = rows_of(child.pid, reader.snapshot(base.clock_ns))

    assert [row.tid for row in rows] == [child.pid]
    assert 0 <= rows[0].run_ns <= schedstat(child.pid)[0]


def test_a_storm_of_short_lives_breaks_no_look_and_leaks_no_descriptor(spawn, names_in):
    budget = DescriptorBudget()
    reader = ProcThreads(budget=budget)
    spawn(
        "import os, threading\nprint('up', flush=True)\n"
        "while True:\n"
        " threads = [threading.Thread(target=int) for _ in range(5)]\n"
        " for each in threads: each.start()\n"
        " pid = os.fork() or os._exit(0)\n"
        " os.waitpid(pid, 0)\n"
    )
    before = len(names_in("/proc/self/fd"))

    rows = reader.snapshot(0)
    for _ in range(60):
        rows = reader.snapshot(rows.clock_ns)
        assert rows.threads_seen > 0
        assert all(row.run_ns >= 0 and row.delay_ns >= 0 for row in rows.rows)
        assert len({row.tid for row in rows.rows}) == len(rows.rows)
    reader.close()

    assert not [defect for defect in rows.defects if "failed" in defect or "sense" in defect]
    assert budget.used == 0
    assert len(names_in("/proc/self/fd")) == before


def test_what_a_process_held_open_is_let_go_when_it_ends(spawn):
    reader = ProcThreads()
    child = spawn(ON_CALL, 50)
    base = reader.snapshot(0)
    held = held_open(child.pid)

    child.kill()
    child.wait()
    rows = reader.snapshot(base.clock_ns)

    assert rows_of(child.pid, rows) == []
    assert (len(held), held_open(child.pid)) == (51, [])
    reader.close()


def held_open(pid):
    links = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [link for link in links if link.startswith(f"/proc/{pid}/")]


def test_a_pid_that_the_kernel_gives_out_again_is_another_process(reader, spawn, let_run):
    first = spawn(BUSY)
    let_run(first.pid, 100)
    base = reader.snapshot(0)
    first.kill()
    first.wait()
    second = spawn_with_pid(spawn, first.pid)
    let_run(second.pid)

    [row] = rows_of(second.pid, reader.snapshot(base.clock_ns))

    assert 0 < row.run_ns <= schedstat(second.pid)[0]
    assert row.start_ticks == int(Path(f"/proc/{second.pid}/stat").read_text().split()[21])


def spawn_with_pid(spawn, pid):
    last_pid = Path("/proc/sys/kernel/ns_last_pid")
    for _ in range(20):
        try:
            last_pid.write_text(str(pid - 1))
        except OSError as error:
            pytest.skip(f"cannot choose a pid here: {error}")
        child = spawn(BUSY)
        if child.pid == pid:
            return child
        child.kill()
        child.wait()
    pytest.skip("the pid was taken each time")


def test_a_zombie_is_no_trouble(reader, spawn, wait_until):
    child = spawn(IDLE)
    base = reader.snapshot(0)
    os.kill(child.pid, signal.SIGKILL)
    wait_until(lambda: ") Z " in Path(f"/proc/{child.pid}/stat").read_text())

    rows = reader.snapshot(base.clock_ns)

    assert rows.threads_seen > 0


def test_never_more_descriptors_are_kept_than_the_budget_has(spawn):
    budget = DescriptorBudget(20)
    reader = ProcThreads(budget=budget)
    child = spawn(ON_CALL, 40)

    base = reader.snapshot(0)
    rows = reader.snapshot(base.clock_ns)

    assert budget.used == 20
    assert rows.threads_seen >= 41
    assert child.poll() is None
    reader.close()


def test_kernel_threads_are_told_apart(reader):
    for stat in Path("/proc").glob("[0-9]*/stat"):
        if b"(kthreadd)" in stat.read_bytes():
            break
    else:
        pytest.skip("no kernel threads are visible here")
    clock, found = reader.snapshot(0).clock_ns, []
    deadline = time.monotonic() + PATIENCE_S

    while not found and time.monotonic() < deadline:
        time.sleep(0.05)
        rows = reader.snapshot(clock)
        clock = rows.clock_ns
        found = [row for row in rows.rows if row.is_kthread]

    assert found
    assert all(row.tid == row.tgid and row.uid == 0 for row in found)
    assert not any(row.is_kthread for row in rows_of(os.getpid(), rows))


def test_a_process_that_moved_is_found_in_its_new_cgroup(reader, spawn, cgroup, let_run):
    name, folder = cgroup
    child = spawn(BUSY)
    clock = reader.snapshot(0).clock_ns
    for _ in range(4):
        clock = reader.snapshot(clock).clock_ns
    (folder / "cgroup.procs").write_text(str(child.pid))
    reader.refresh_cgroups()
    let_run(child.pid)

    rows = reader.snapshot(clock)

    [row] = rows_of(child.pid, rows)
    assert row.cgroup == f"{name}/"
    assert rows.threads_by_cgroup[f"{name}/"] == 1
    child.kill()
    child.wait()


def test_a_process_that_moves_right_after_its_start_is_found_without_being_told(
    reader, spawn, cgroup
):
    name, folder = cgroup
    base = reader.snapshot(0)
    child = spawn(BUSY)
    clock = reader.snapshot(base.clock_ns).clock_ns
    (folder / "cgroup.procs").write_text(str(child.pid))

    rows = reader.snapshot(clock)

    assert rows.threads_by_cgroup.get(f"{name}/") == 1
    child.kill()
    child.wait()


def test_every_process_is_looked_up_again_in_turn(spawn, cgroup):
    name, folder = cgroup
    child = spawn(BUSY)
    reader = ProcThreads()
    clock = reader.snapshot(0).clock_ns
    for _ in range(4):
        clock = reader.snapshot(clock).clock_ns
    (folder / "cgroup.procs").write_text(str(child.pid))
    found = {}

    for _ in range(60):
        rows = reader.snapshot(clock)
        clock, found = rows.clock_ns, rows.threads_by_cgroup
        if f"{name}/" in found:
            break

    assert found[f"{name}/"] == 1
    reader.close()
    child.kill()
    child.wait()


def test_a_user_without_rights_sees_what_proc_shows_him():
    script = (
        "import os, time\n"
        "from temper_core.observe.threads import ProcThreads\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "reader = ProcThreads(); rows = reader.snapshot(0)\n"
        "time.sleep(0.02)\n"  # what runs is booked when it sleeps, or at the timer's tick
        "rows = reader.snapshot(rows.clock_ns)\n"
        "print(any(row.tid == os.getpid() for row in rows.rows), rows.threads_seen > 1)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd="/"
    )

    assert (done.stdout, done.stderr) == ("True True\n", "")
