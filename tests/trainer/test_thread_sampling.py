import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from temper_core import InputError, MachineError
from temper_plugin_trainer.process_trees import CgroupProcesses, ProcessTrees
from temper_plugin_trainer.sampling import ThreadSampler
from tests.patience import PATIENCE_S

SLEEP = Path(shutil.which("sleep")).resolve().name
SCRIPT = """
import ctypes, subprocess, sys, threading
name = lambda text: ctypes.CDLL(None).prctl(15, text.encode())
named = threading.Event()
def work(first):
    name(first)
    named.set()
    for line in iter(queue[first].get, None):
        if line == "spin":
            for _ in range(400_000): pass
        else:
            name(line)
        print("done", flush=True)
import queue as queues
queue = {}
threads = {}
children = []
for line in sys.stdin:
    what, *rest = line.split()
    if what == "thread":
        queue[rest[0]] = queues.Queue()
        threads[rest[0]] = threading.Thread(target=work, args=rest)
        named.clear()
        threads[rest[0]].start()
        named.wait()
    elif what == "tell":
        queue[rest[0]].put(rest[1])
        continue
    elif what == "end":
        queue[rest[0]].put(None)
        threads[rest[0]].join()
    elif what == "churn":
        for _ in range(600):
            each = threading.Thread(target=len, args=("",))
            each.start()
            each.join()
    elif what == "child":
        children.append(subprocess.Popen(["sleep", "300"]))
    elif what == "bury":
        children[-1].kill()
        children[-1].wait()
    print("done", flush=True)
for child in children:
    child.kill()
for each in queue.values():
    each.put(None)
"""


class Program:
    """A real process that does what it is told, and says when it has."""

    def __init__(self, process):
        self.pid = process.pid
        self._process = process

    def kill(self):
        self._process.kill()
        self._process.wait()

    def end(self, name):
        """End a thread, and wait until the kernel has forgotten it as well."""
        before = self.count()
        self.do(f"end {name}")
        while self.count() == before:
            time.sleep(0.001)

    def count(self):
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def do(self, line):
        self.tell(line)
        self.hear()

    def tell(self, line):
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def hear(self):
        assert self._process.stdout.readline() == "done\n"


@contextmanager
def running(folder, *words):
    (folder / "shop.py").write_text(SCRIPT)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, folder / "shop.py", *words]
    with subprocess.Popen(command, text=True, **pipes) as process:
        program = Program(process)
        program.do("hello")
        yield program
        process.stdin.close()


@pytest.fixture
def program(tmp_path):
    with running(tmp_path, "--config=/srv/shop/shop.conf", "--password", "hunter2") as started:
        yield started


@pytest.fixture
def clock():
    return Clock()


class Clock:
    """The kernel's own, which a test may set forward."""

    def __init__(self):
        self.ahead_s = 0.0

    def __call__(self):
        return time.clock_gettime(time.CLOCK_BOOTTIME) + self.ahead_s


@pytest.fixture
def sampler(program):
    return ThreadSampler(ProcessTrees([program.pid]))


def rows(sampler):
    return {thread.comm: thread for thread in sampler.seen()}


def test_a_thread_is_told_with_what_it_used_between_the_looks(program, sampler):
    program.do("thread busy")
    program.do("thread idle")
    sampler.look()

    program.do("tell busy spin")
    sampler.look()

    seen = rows(sampler)
    assert seen["busy"].used.run_ns > 10 * seen["idle"].used.run_ns
    assert seen["busy"].used.runs >= 1
    assert not seen["busy"].leader
    assert seen["busy"].lived_s == pytest.approx(sampler.seconds)


def test_what_a_thread_used_before_the_first_look_is_not_counted(program, sampler):
    program.do("thread busy")
    program.do("tell busy spin")
    sampler.look()

    sampler.look()

    assert rows(sampler)["busy"].used.run_ns < 1_000_000


def test_the_leader_names_the_process_and_its_title_is_cleaned(sampler):
    sampler.look()
    sampler.look()

    (leader,) = [thread for thread in sampler.seen() if thread.leader]

    assert leader.process == leader.comm
    assert leader.title.endswith("shop.py --config=shop.conf --password ***")


@pytest.fixture
def blocking(program, tmp_path):
    """A /proc in which the command line of the program blocks its reader, as FUSE can."""
    root, home = tmp_path / "proc", tmp_path / "proc" / str(program.pid)
    home.mkdir(parents=True)
    (root / "self").symlink_to("/proc/self")
    for name in ("stat", "task", "comm", "exe"):
        (home / name).symlink_to(f"/proc/{program.pid}/{name}")
    os.mkfifo(home / "cmdline")
    return root


def test_a_command_line_that_blocks_its_reader_holds_up_no_recording(program, blocking):
    sampler = ThreadSampler(ProcessTrees([program.pid], blocking), proc_root=blocking)
    looking = threading.Thread(target=lambda: [sampler.look() for _ in range(3)], daemon=True)

    looking.start()
    looking.join(PATIENCE_S / 4)

    assert not looking.is_alive()
    assert [thread.title for thread in sampler.seen() if thread.leader] == [""]
    sampler.close()


def test_a_thread_that_comes_and_goes_counts_with_all_that_it_was_seen_to_use(program, sampler):
    sampler.look()
    program.do("thread brief")
    program.do("tell brief spin")
    sampler.look()
    program.end("brief")

    sampler.look()

    brief = rows(sampler)["brief"]
    assert brief.used.run_ns > 1_000_000
    assert brief.lived_s < sampler.seconds


def test_a_thread_that_renames_itself_has_the_name_that_was_seen_most(program, sampler):
    program.do("thread read")
    sampler.look()
    program.do("tell read parse")
    sampler.look()
    sampler.look()

    seen = rows(sampler)

    assert seen["parse"].names == ("read",)
    assert "read" not in seen


def test_children_are_followed_once_they_are_born(program, sampler):
    sampler.look()
    program.do("child")

    # The kernel sets the name before the title (execve(2)).
    deadline = time.monotonic() + PATIENCE_S
    while not ("sleep" in rows(sampler) and rows(sampler)["sleep"].title):
        assert time.monotonic() < deadline
        sampler.look()

    sleeper = rows(sampler)["sleep"]
    assert (sleeper.process, sleeper.title, sleeper.leader) == ("sleep", "sleep 300", True)


def test_executable_parent_and_age_are_told_of_real_threads(program, clock):
    sampler = ThreadSampler(ProcessTrees([program.pid]), clock=clock)
    program.do("thread old")
    clock.ahead_s = 100.0
    sampler.look()
    program.do("child")
    deadline = time.monotonic() + PATIENCE_S
    while "sleep" not in rows(sampler):
        assert time.monotonic() < deadline
        sampler.look()

    old, sleeper = rows(sampler)["old"], rows(sampler)["sleep"]

    python = Path(f"/proc/{program.pid}/exe").resolve().name
    assert old.origin == (python, Path("/proc/self/comm").read_text().strip(), False)
    assert sleeper.origin == (SLEEP, old.process, False)
    assert 100 <= old.age_s < 100 + PATIENCE_S


def test_a_thread_that_begins_in_the_recording_is_new(program, sampler):
    sampler.look()
    program.do("thread brief")
    sampler.look()
    sampler.look()

    assert rows(sampler)["brief"].age_s == 0


def test_a_child_that_has_ended_keeps_its_row(program, sampler):
    sampler.look()
    program.do("child")
    sampler.look()
    program.do("bury")

    sampler.look()

    assert "sleep" in rows(sampler)
    assert not sampler.is_over


def test_cpu_time_of_threads_that_no_look_saw_is_told_apart(program, clock):
    sampler = ThreadSampler(ProcessTrees([program.pid]), clock=clock)
    sampler.look()
    program.do("thread hidden")
    for _ in range(8):
        program.do("tell hidden spin")
    program.end("hidden")
    clock.ahead_s = 1.0

    sampler.look()

    assert "hidden" not in rows(sampler)
    assert sampler.unseen_cpus > 0.02


def test_a_program_that_has_ended_is_over(tmp_path):
    with running(tmp_path) as program:
        sampler = ThreadSampler(ProcessTrees([program.pid]))
        sampler.look()
    was_over = sampler.is_over

    sampler.look()

    assert (was_over, sampler.is_over) == (False, True)


def test_a_process_that_nobody_waited_for_has_ended_all_the_same():
    with subprocess.Popen(["sleep", "60"]) as process:
        sampler = ThreadSampler(ProcessTrees([process.pid]))
        sampler.look()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        sampler.look()

        assert sampler.is_over


def test_a_process_that_is_not_there_is_refused():
    with subprocess.Popen(["true"]) as ended:
        pass

    with pytest.raises(InputError, match=f"--pid {ended.pid}: there is no such process"):
        ProcessTrees([ended.pid])


def test_a_kernel_without_the_counters_is_told_as_such(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").symlink_to("/proc/self/stat")
    sampler = ThreadSampler(ProcessTrees([7], tmp_path), proc_root=tmp_path)

    with pytest.raises(MachineError, match="CONFIG_SCHED_INFO"):
        sampler.look()


def test_the_recorder_is_not_of_the_recorded(program):
    trees = ProcessTrees([os.getpid()])

    processes = trees.processes()

    assert os.getpid() not in processes
    assert program.pid in processes


def test_whoever_is_orphaned_stays_in_the_tree(program):
    trees = ProcessTrees([program.pid])
    program.do("child")
    (child,) = trees.processes().keys() - {program.pid}

    program.kill()
    processes = trees.processes()
    os.kill(child, 9)

    assert child in processes


def test_processes_of_cgroups_are_told_with_their_containers(tmp_path):
    for name, pids in (("app/worker", "11\n12\n"), ("proxy", "13\n0\n")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "cgroup.procs").write_text(pids)

    source = CgroupProcesses([tmp_path / "app", tmp_path / "proxy"], lambda path: path.parts[-1])

    assert source.processes() == {11: "worker", 12: "worker", 13: "proxy"}


def test_a_thread_without_readable_name_is_recorded_all_the_same(program, sampler):
    program.do("thread (a)b\N{BELL}")
    sampler.look()
    sampler.look()

    assert "(a)b\N{BELL}" in rows(sampler)


def test_looks_are_safe_while_threads_come_and_go(program):
    sampler = ThreadSampler(ProcessTrees([program.pid]))
    program.tell("churn")

    for _ in range(30):
        sampler.look()

    program.hear()
    assert sum(thread.leader for thread in sampler.seen()) == 1
