"""How long a start may take: by its CPU time, by the clock, and by standing still."""

import os
import subprocess
import sys
import time

import pytest

from temper_core.scheduler.engine_process.start_deadline import StartDeadline, cpu_seconds
from tests.patience import PATIENCE_S


def test_a_start_that_works_may_take_ten_times_its_cpu_time():
    deadline = StartDeadline(60.0, 0.0)

    for now in range(1, 600):
        deadline.look(float(now), now * 0.05)

    assert deadline.passed(599.0) == ""
    assert deadline.passed(600.0) == "it took 600 s"


def test_a_start_that_used_its_cpu_time_is_over_however_quick_it_was():
    deadline = StartDeadline(60.0, 0.0)
    deadline.look(59.0, 59.9)
    assert deadline.passed(59.0) == ""

    deadline.look(60.0, 60.0)

    assert deadline.passed(60.0) == "it used 60 s of CPU"
    assert str(deadline) == "used 60 of 60 s of CPU"


@pytest.mark.parametrize("seen", [3.0, None])
def test_a_start_that_stands_still_is_over_as_soon(seen):
    deadline = StartDeadline(60.0, 0.0)
    deadline.look(10.0, 3.0)

    for now in range(11, 71):
        deadline.look(float(now), seen)

    assert deadline.passed(69.9) == ""
    assert deadline.passed(70.0) == "it did nothing for 60 s"


def test_a_restart_gives_it_the_whole_time_again():
    deadline = StartDeadline(60.0, 0.0)
    deadline.look(50.0, 55.0)

    deadline.restart(50.0)
    deadline.look(90.0, 100.0)

    assert deadline.passed(100.0) == ""
    assert str(deadline) == "used 45 of 60 s of CPU"


def test_a_restart_may_leave_it_less_time_to_stand_still():
    deadline = StartDeadline(60.0, 0.0)

    deadline.restart(10.0, idle_s=30.0)
    deadline.look(20.0, 1.0)

    assert deadline.passed(49.9) == ""
    assert deadline.passed(50.0) == "it did nothing for 30 s"


def test_the_cpu_time_of_a_real_process_counts_all_its_threads():
    spin = "threading.Thread(target=sum, args=(range(1 << 40),)).start()"
    with subprocess.Popen([sys.executable, "-c", f"import threading; {spin}; {spin}"]) as process:
        limit = time.monotonic() + PATIENCE_S
        while (cpu_seconds(process.pid) or 0.0) < 0.1:
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.kill()
        process.wait()
        gone = cpu_seconds(process.pid)

    assert gone is None
    assert cpu_seconds(os.getpid()) == pytest.approx(time.process_time(), abs=1.0)


def test_a_process_that_calls_itself_anything_is_read_all_the_same(tmp_path):
    (tmp_path / "7").mkdir()
    fields = " ".join(str(n) for n in range(4, 53))
    (tmp_path / "7/stat").write_text(f"7 (a) b ( 1 2 3) S {fields}\n")

    assert cpu_seconds(7, tmp_path) == (14 + 15) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("text", ["", "7 (x) S 1 2", "7 (x) S " + "x " * 50])
def test_a_file_that_makes_no_sense_tells_no_time(tmp_path, text):
    (tmp_path / "7").mkdir()
    (tmp_path / "7/stat").write_text(text)

    assert cpu_seconds(7, tmp_path) is None
