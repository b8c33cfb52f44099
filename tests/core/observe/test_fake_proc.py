"""What a real /proc cannot be made to do on demand: reused tids, odd files, missing rights."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.process_text import NS_PER_TICK, parse_stat
from temper_core.observe.threads import ProcThreads


@pytest.fixture
def reader(fake_proc):
    """A reader without kept descriptors: in a plain folder they would outlive their thread."""
    return ProcThreads(fake_proc.root, DescriptorBudget(0))


def now_ticks():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // NS_PER_TICK


def test_the_made_up_line_has_the_form_of_the_real_one(fake_proc):
    real = parse_stat(Path("/proc/self/stat").read_bytes())

    made_up = parse_stat(fake_proc.stat_line(1, real.comm, real.start_ticks, real.cpu, 5))

    assert made_up == real._replace(cpu_ticks=5)


def test_a_reused_tid_is_told_by_its_start_time_and_brings_all_it_used(fake_proc, reader):
    fake_proc.add(7, comm="old", run=1_000, start=100)
    base = reader.snapshot(0)
    fake_proc.add(7, comm="new", run=5_000, delay=300, start=now_ticks() + 1)
    fake_proc.write("7/cgroup", "0::/other.slice\n")

    [row] = reader.snapshot(base.clock_ns).rows

    assert (row.comm, row.process, row.run_ns, row.delay_ns) == ("new", "new", 5_000, 300)
    assert row.cgroup == "other.slice/"


def test_counters_that_fall_at_the_same_start_time_give_no_negative_delta(fake_proc, reader):
    fake_proc.add(7, run=9_000, delay=90, start=100)
    base = reader.snapshot(0)
    fake_proc.add(7, run=4_000, delay=100, start=100)

    [row] = reader.snapshot(base.clock_ns).rows

    assert (row.run_ns, row.delay_ns) == (0, 10)


def test_a_thread_that_vanishes_between_its_two_files_has_no_row(fake_proc, reader):
    fake_proc.add(7, run=1)
    fake_proc.add(7, 8, run=1)
    base = reader.snapshot(0)
    fake_proc.add(7, 8, run=2)
    (fake_proc.root / "7/task/8/stat").unlink()

    rows = reader.snapshot(base.clock_ns)

    assert (rows.rows, rows.defects) == ((), ())
    assert rows.threads_seen == 2


def test_a_process_that_vanishes_is_forgotten_and_may_come_back(fake_proc, reader):
    fake_proc.add(7, run=1, start=100)
    base = reader.snapshot(0)
    fake_proc.remove("7")
    gone = reader.snapshot(base.clock_ns)
    fake_proc.add(7, run=50, start=now_ticks() + 1)

    rows = reader.snapshot(gone.clock_ns)

    assert gone.threads_seen == 1
    assert [(row.tid, row.run_ns) for row in rows.rows] == [(7, 50)]


def test_an_older_thread_that_comes_into_sight_is_not_charged_for_its_past(fake_proc, reader):
    base = reader.snapshot(0)
    fake_proc.add(7, run=10**15, start=1)

    rows = reader.snapshot(base.clock_ns)

    assert rows.rows == ()
    assert rows.threads_seen == 2
    assert [base.sees_all, rows.sees_all, reader.snapshot(rows.clock_ns).sees_all] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("content", [b"", b"7 (work", b"7 (work) S 1", b"\xff\xfe", b"7 (a) " * 9])
def test_one_thread_with_an_odd_stat_line_leaves_the_others_alone(fake_proc, reader, content):
    fake_proc.add(6, run=1)
    fake_proc.add(7, run=1)
    base = reader.snapshot(0)
    fake_proc.add(6, run=5)
    fake_proc.add(7, run=5)
    fake_proc.write("7/task/7/stat", content)

    rows = reader.snapshot(base.clock_ns)

    assert [row.tid for row in rows.rows] == [6]
    assert rows.defects == ("threads: 1 threads with malformed files",)


def test_a_thread_whose_counters_are_odd_from_the_start_is_named_as_a_defect(fake_proc, reader):
    fake_proc.add(7)
    fake_proc.write("7/task/7/schedstat", "what?\n")

    rows = reader.snapshot(0)

    assert rows.threads_seen == 1
    assert rows.defects == ("threads: 1 threads with malformed files",)


def test_a_kernel_without_schedstat_counts_in_clock_ticks_and_says_so(fake_proc):
    fake_proc.write("self/schedstat", "0 0 0\n")
    fake_proc.add(7, ticks=10)
    reader = ProcThreads(fake_proc.root, DescriptorBudget(0))
    base = reader.snapshot(0)
    fake_proc.add(7, ticks=13, cpu=1)

    rows = reader.snapshot(base.clock_ns)

    assert [(row.run_ns, row.delay_ns, row.cpu) for row in rows.rows] == [(3 * NS_PER_TICK, 0, 1)]
    assert rows.defects == ("threads: no schedstat; CPU time in clock ticks, no run delay",)


def test_a_kernel_whose_schedstat_is_missing_is_read_by_stat_alone(fake_proc):
    (fake_proc.root / "self/schedstat").unlink()
    fake_proc.add(7, ticks=10)
    (fake_proc.root / "7/task/7/schedstat").unlink()

    rows = ProcThreads(fake_proc.root, DescriptorBudget(0)).snapshot(0)

    assert rows.threads_seen == 2


def test_files_that_are_no_processes_are_passed_over(fake_proc, reader):
    fake_proc.write("version", "Linux\n")
    fake_proc.write("12x/task/1/stat", "")

    assert reader.snapshot(0).threads_seen == 1


def test_hidden_processes_are_named_as_a_defect(fake_proc, reader):
    fake_proc.remove("1")
    fake_proc.add(7)

    rows = reader.snapshot(0)

    assert rows.threads_seen == 1
    assert rows.defects == ("threads: other users' processes are hidden (hidepid)",)
    assert not rows.sees_all


def test_a_root_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        ProcThreads(tmp_path / "nowhere").snapshot(0)


def test_what_may_not_be_read_is_counted_and_the_rest_is_seen(fake_proc):
    fake_proc.add(6)
    fake_proc.add(7)
    fake_proc.root.chmod(0o755)
    (fake_proc.root / "7/task").chmod(0)
    script = (
        "import json, os\n"
        "from temper_core.observe.threads import ProcThreads\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "rows = ProcThreads('.').snapshot(0)\n"
        "print(json.dumps([rows.threads_seen, rows.defects]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", script]

    try:
        done = subprocess.run(
            command, cwd=fake_proc.root, env=environment, stdout=subprocess.PIPE, check=True
        )
    finally:
        (fake_proc.root / "7/task").chmod(0o755)

    seen, defects = json.loads(done.stdout)
    assert seen == 2
    assert defects == ["threads: 1 processes or threads that may not be read"]
