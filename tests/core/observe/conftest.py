"""Real processes to watch, and a made-up /proc for what a real one cannot be made to do."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from temper_core.observe.cgroup_roots import CgroupRoots
from tests.patience import PATIENCE_S

BUSY = "print('up', flush=True)\nwhile True: pass"
MOVED_ASLEEP = """
import os, sys, threading, time
cpus = sorted(os.sched_getaffinity(0))[:2]
calls = []
def work(called):
    os.sched_setaffinity(0, cpus[:1])
    called.acquire()
    end = time.thread_time() + 0.004
    while time.thread_time() < end: pass
    called.acquire()
    called.acquire()
def is_asleep(tid):
    line = open(f"/proc/self/task/{tid}/stat").read()
    return line[line.rindex(")") + 2] == "S"
for place in range(12):
    calls.append(threading.Semaphore(0))
    worker = threading.Thread(target=work, args=calls[-1:], daemon=True)
    worker.start()
    calls[-1].release()
    time.sleep(0.002)
    while not is_asleep(worker.native_id): pass
    os.sched_setaffinity(worker.native_id, cpus[1:])
print('up', flush=True)
for line in sys.stdin:
    for called in calls: called.release()
    print('woken', flush=True)
"""
"""Threads that are moved right after they went to sleep, having had more than their share, and are
woken for each line."""


@pytest.fixture
def spawn():
    """Start ``python -c script``; returns when the script has printed its first line."""
    children = []

    def start(script, *arguments):
        command = [sys.executable, "-S", "-c", script, *map(str, arguments)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        children.append(child)
        child.stdout.readline()
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def tell():
    """Send a line to a child that ``spawn`` started, and wait for its answer."""

    def send(child, line="go"):
        child.stdin.write(f"{line}\n")
        child.stdin.flush()
        return child.stdout.readline().strip()

    return send


@pytest.fixture
def wait_until():
    """Ask *question* until it is true; fail with *what* after ten seconds."""

    def wait(question, what="it did not happen"):
        deadline = time.monotonic() + PATIENCE_S
        while not question():
            assert time.monotonic() < deadline, what
            time.sleep(0.01)

    return wait


@pytest.fixture
def let_run(wait_until):
    """Wait until the leader of *pid* has run for some more milliseconds, however busy the host."""

    def run_ms(pid):
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) // 1_000_000

    def wait(pid, more_ms=10):
        enough = run_ms(pid) + more_ms
        wait_until(lambda: run_ms(pid) >= enough, "the process gets no CPU")

    return wait


@pytest.fixture
def settle(wait_until):
    """Wait until no thread of *pid* has run for a while."""

    def counters(pid):
        files = sorted(Path(f"/proc/{pid}/task").glob("*/schedstat"))
        return [file.read_text() for file in files]

    def rests(pid):
        before = counters(pid)
        time.sleep(0.05)
        return before == counters(pid)

    return lambda pid: wait_until(lambda: rests(pid), "the process does not rest")


@pytest.fixture
def moved_asleep(spawn, settle):
    """Threads of which the kernel may keep since when they were last queued, though they sleep."""
    for cpu in sorted(os.sched_getaffinity(0))[:2]:
        os.sched_setaffinity(spawn(BUSY).pid, {cpu})
    child = spawn(MOVED_ASLEEP)
    settle(child.pid)
    return child


@pytest.fixture
def names_in():
    """List the names in a folder, once; an object per name would be another thing to open."""
    return lambda folder: {path.name for path in Path(folder).iterdir()}


class FakeProc:
    """A /proc in a folder; its files have the form of the real ones."""

    def __init__(self, root):
        self.root = root
        self.write("self/schedstat", "1 1 1\n")
        self.add(1, comm="init")

    def write(self, path, content):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # The same inode, as a kept descriptor of the kernel's shows what is true now.
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def add(self, pid, tid=None, *, comm="work", **values):
        tid = tid or pid
        run, delay = values.get("run", 0), values.get("delay", 0)
        start, cpu, ticks = (
            values.get(k, v) for k, v in (("start", 100), ("cpu", 0), ("ticks", 0))
        )
        self.write(f"{pid}/cgroup", "0::/work.slice\n")
        task = f"{pid}/task/{tid}"
        self.write(f"{task}/schedstat", f"{run} {delay} 7\n")
        self.write(f"{task}/stat", self.stat_line(tid, comm, start, cpu, ticks))

    def remove(self, path):
        shutil.rmtree(self.root / path)

    @staticmethod
    def stat_line(tid, comm, start, cpu, ticks=0, flags=0x400000):
        """Put the values into the line that the kernel really wrote for this process."""
        real = Path("/proc/self/stat").read_bytes()
        fields = real[real.rindex(b")") + 2 :].split()
        for position, value in ((6, flags), (11, ticks), (12, 0), (19, start), (36, cpu)):
            fields[position] = str(value).encode()
        name = comm.encode() if isinstance(comm, str) else comm
        return b"%d (%s) %s\n" % (tid, name, b" ".join(fields))


@pytest.fixture
def fake_proc(tmp_path):
    """Return an empty made-up /proc with an init."""
    return FakeProc(tmp_path / "proc")


@contextmanager
def made_cgroup():
    """Make a real cgroup v2 below the root, as ``(name, folder)``; it is removed afterwards."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    roots = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    if not roots or not os.access(roots[0], os.W_OK):
        pytest.skip("no writable cgroup v2 here")
    folder = roots[0] / f"temper-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"cannot make a cgroup here: {error}")
    try:
        yield folder.name, folder
    finally:
        for pid in (folder / "cgroup.procs").read_text().split():
            (roots[0] / "cgroup.procs").write_text(pid)
        folder.rmdir()


@pytest.fixture
def cgroup():
    """Make a cgroup as ``made_cgroup`` does."""
    with made_cgroup() as made:
        yield made


@pytest.fixture
def throttled():
    """Make a cgroup that may use a tenth of a CPU: its path, the hierarchies, and who joins it."""
    hierarchies = [Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/unified")]
    if not all(os.access(root / "cgroup.procs", os.W_OK) for root in hierarchies):
        pytest.skip("no CPU controller of cgroup v1 beside a writable cgroup v2 here")
    folders = [root / f"temper-quota-{os.getpid()}" for root in hierarchies]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "cpu.cfs_quota_us").write_text("10000")
    cpu, unified = map(str, hierarchies)

    def join(pid):
        for folder in folders:
            (folder / "cgroup.procs").write_text(str(pid))

    yield f"{folders[0].name}/", CgroupRoots(unified, cpu=cpu), join
    for folder in folders:
        for pid in (folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        wait_for_nobody(folder / "cgroup.procs")
        folder.rmdir()


def wait_for_nobody(file):
    deadline = time.monotonic() + PATIENCE_S
    while file.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
