"""Titles, executables, parents and behaviour of real processes."""

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_core.steering.deciding import Judge
from temper_core.steering.thread_probe import ThreadProbe

TITLED = "import time\nprint('up', flush=True)\ntime.sleep(60)"
SLEEPS = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.005)"
FORKS = """
import os, sys, time
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(60)
"""
NAMED_AS_ROOT = """
import ctypes, os, time
os.setgid(1000)
os.setuid(1000)
ctypes.CDLL(None).prctl(15, b"temper\\x0bUid: 0 0")
print("up", flush=True)
print(os.geteuid(), flush=True)
time.sleep(60)
"""
SPINS = "print('up', flush=True)\nwhile True: pass"


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sight(clock):
    sight = ThreadProbe(clock=clock)
    yield sight
    sight.close()


@pytest.fixture
def spawn():
    children = []

    def start(code, *words):
        command = [sys.executable, "-c", code, *words]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        child.stdout.readline()
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.wait()
        child.stdout.close()


def fake(root, **files):
    (root / "5/task/5").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = root / "5/task/5/schedstat" if name == "schedstat" else root / "5" / name
        path.write_text(text)


def test_a_title_is_the_command_line_with_blanks_between_the_words(sight, spawn):
    child = spawn(TITLED, "writer", "process")

    assert sight.title(child.pid).endswith("writer process")
    assert sight.process(child.pid) == Path(f"/proc/{child.pid}/comm").read_text().strip()
    assert sight.is_root(child.pid) is (os.geteuid() == 0)


def test_of_a_long_title_what_patterns_see_is_kept_in_two_bytes_a_character(sight, spawn):
    child = spawn(TITLED, "\U0001f600" + "x" * 2_000)

    title = sight.title(child.pid)

    assert len(title) == 1_024
    assert sys.getsizeof(title) < 2 * 1_024 + 200
    assert "\ufffdxxx" in title
    assert sight.title(child.pid) == title


def test_of_a_process_that_has_gone_nothing_is_known(sight, spawn):
    child = spawn(TITLED)
    child.kill()
    child.wait()

    assert sight.title(child.pid) == ""
    assert sight.process(child.pid) == ""
    assert not sight.is_root(child.pid)


def executable_of(pid):
    return Path(f"/proc/{pid}/exe").resolve().name


def test_the_executable_is_told_by_the_name_of_its_file(sight, spawn):
    child = spawn(TITLED)

    assert sight.exe(child.pid) == executable_of(os.getpid())
    assert sight.parent(child.pid) == Path("/proc/self/comm").read_text().strip()


def test_a_fork_is_a_child_and_a_program_that_was_started_is_not(sight):
    with subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE) as server:
        child = int(server.stdout.readline())
        with subprocess.Popen(["sleep", "60"]) as other:
            kinship = {pid: sight.is_child(pid) for pid in (server.pid, child, other.pid)}
            other.kill()
        os.kill(child, 9)
        server.kill()

    assert kinship == {server.pid: False, child: True, other.pid: False}


def test_a_fork_whose_parent_has_ended_is_a_child_still(sight):
    with subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE) as server:
        child = int(server.stdout.readline())
        server.kill()
    orphaned = sight.is_child(child)
    os.kill(child, 9)

    assert orphaned is True


def test_an_executable_that_may_not_be_read_is_counted(tmp_path, monkeypatch):
    (tmp_path / "5").mkdir()
    sight = ThreadProbe(tmp_path)

    def denied(path):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "readlink", denied)

    assert (sight.exe(5), sight.denied) == ("", 1)
    assert "exe needs CAP_SYS_PTRACE" in Judge(sight).problem
    sight.keep(frozenset())
    assert (sight.denied, Judge(sight).problem) == (0, "")


def test_an_executable_that_an_upgrade_removed_keeps_its_name(sight, tmp_path):
    program = tmp_path / "served"
    shutil.copy(shutil.which("sleep"), program)
    with subprocess.Popen([program, "60"]) as server:
        program.unlink()
        name = sight.exe(server.pid)
        server.kill()

    assert name == "served"


def test_of_a_process_that_has_gone_neither_executable_nor_parent_is_known(sight, spawn):
    child = spawn(TITLED)
    child.kill()
    child.wait()

    assert (sight.exe(child.pid), sight.parent(child.pid)) == ("", "")
    assert sight.is_child(child.pid) is None
    assert sight.exe(2**22 + 1) == ""


def test_an_executable_is_read_once_for_all_threads_and_again_after_five_seconds(
    tmp_path, clock, monkeypatch
):
    (tmp_path / "5").mkdir()
    (tmp_path / "5/exe").symlink_to("/usr/bin/java")
    sight = ThreadProbe(tmp_path, clock)
    sight.exe(5)
    clock.now += 60
    reads = []
    monkeypatch.setattr(
        os, "readlink", lambda path, read=os.readlink: reads.append(path) or read(path)
    )

    names = {sight.exe(5) for _ in range(1000)}
    clock.now += 4.9
    names |= {sight.exe(5) for _ in range(1000)}

    assert (names, len(reads)) == ({"java"}, 1)
    assert sight.origin_lasts_s(5) == 5.0
    clock.now += 0.2
    sight.exe(5)
    assert len(reads) == 2


def test_a_young_process_is_read_anew_more_often_than_an_old_one(tmp_path, clock):
    sight = ThreadProbe(tmp_path, clock)
    titles = []

    for text, later_s in [("one", 0), ("two", 1), ("three", 19), ("four", 4), ("five", 2)]:
        clock.now += later_s
        fake(tmp_path, cmdline=text)
        titles.append(sight.title(5))

    assert titles == ["one", "two", "three", "three", "five"]


def test_a_forgotten_process_is_young_again(tmp_path, clock):
    sight = ThreadProbe(tmp_path, clock)
    fake(tmp_path, cmdline="old")
    sight.title(5)
    clock.now += 60
    sight.title(5)
    fake(tmp_path, cmdline="new")

    sight.keep(frozenset())

    assert sight.title(5) == "new"


def test_the_effective_user_counts(tmp_path):
    fake(tmp_path, status="Name:\tx\nUid:\t1000\t0\t1000\t1000\n")

    assert ThreadProbe(tmp_path).is_root(5)


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process is started by root")
def test_no_name_of_a_process_makes_it_one_of_root(sight, spawn):
    """The kernel prints the name before the users, and escapes ``\\n`` alone."""
    child = spawn(NAMED_AS_ROOT)

    assert child.stdout.readline().split() == [b"1000"]
    assert "Uid: 0 0" in Path(f"/proc/{child.pid}/status").read_text()
    assert not sight.is_root(child.pid)


def test_a_busy_thread_and_a_sleeper_behave_differently(spawn):
    sight = ThreadProbe()
    spinner, sleeper = spawn(SPINS), spawn(SLEEPS)
    children = (spinner, sleeper)
    for child in children:
        assert sight.behaviour(child.pid, child.pid, 1) is None

    time.sleep(2.1)
    busy, idle = (sight.behaviour(child.pid, child.pid, 1) for child in children)

    assert busy.cpu_share > idle.cpu_share
    assert busy.run_us > idle.run_us
    assert idle.wakeups_per_s > 1


def test_within_a_window_the_last_one_stands(tmp_path, clock):
    sight = ThreadProbe(tmp_path, clock)
    fake(tmp_path, schedstat="0 0 0\n")
    sight.behaviour(5, 5, 1)
    clock.now += 4
    fake(tmp_path, schedstat="2000000000 0 100\n")
    first = sight.behaviour(5, 5, 1)
    clock.now += 1
    fake(tmp_path, schedstat="3000000000 0 100\n")

    assert (first.cpu_share, first.run_us, first.wakeups_per_s) == (0.5, 20_000, 25)
    assert sight.behaviour(5, 5, 1) is first


def test_a_thread_that_is_busy_throughout_uses_no_more_than_one_cpu(tmp_path, clock):
    sight = ThreadProbe(tmp_path, clock)
    fake(tmp_path, schedstat="0 0 0\n")
    sight.behaviour(5, 5, 1)
    clock.now += 2
    fake(tmp_path, schedstat="2000400000 0 3\n")

    assert sight.behaviour(5, 5, 1).cpu_share == 1.0


def test_another_thread_of_the_same_tid_is_measured_from_its_own_begin(tmp_path, clock):
    sight = ThreadProbe(tmp_path, clock)
    fake(tmp_path, schedstat="0 0 0\n")
    sight.behaviour(5, 5, 1)
    clock.now += 4

    assert sight.behaviour(5, 5, 2) is None


def test_a_thread_that_never_ran_has_no_run_length(tmp_path, clock):
    sight = ThreadProbe(tmp_path, clock)
    fake(tmp_path, schedstat="5 0 1\n")
    sight.behaviour(5, 5, 1)
    clock.now += 2

    seen = sight.behaviour(5, 5, 1)

    assert (seen.cpu_share, seen.run_us, seen.wakeups_per_s) == (0, None, 0)


def test_a_title_that_cannot_be_read_now_is_the_last_known_one(tmp_path, clock):
    fake(tmp_path, cmdline="server\0--main\0", comm="server\n")
    sight = ThreadProbe(tmp_path, clock)
    before = sight.title(5)
    path = tmp_path / "5/cmdline"
    path.unlink()
    os.mkfifo(path)  # as a process whose memory is locked: who opens it waits
    clock.now += 60

    began = time.monotonic()
    after = sight.title(5)
    took_s = time.monotonic() - began

    release(path)
    sight.close()
    assert before == after == "server --main"
    assert took_s < 5  # and not for ever


def test_a_process_never_seen_whose_memory_is_locked_has_no_title(tmp_path, clock):
    fake(tmp_path, comm="server\n")
    path = tmp_path / "5/cmdline"
    os.mkfifo(path)
    sight = ThreadProbe(tmp_path, clock)

    title = sight.title(5)

    release(path)
    sight.close()
    assert title == ""


def release(pipe):
    """Let go of whoever waits in the pipe, by being its writer for a moment."""
    os.close(os.open(pipe, os.O_WRONLY))
