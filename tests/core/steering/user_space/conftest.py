"""Real threads in real cgroups, and a real BPF file system for the pin."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import frozen

from temper_core.bpf import access
from temper_core.node.cgroups import CgroupTree, detect_cgroups
from temper_core.steering.deciding import Judge
from temper_core.steering.kernel import SteeringKernel
from temper_core.steering.kicking import Kicker
from temper_core.steering.nice_record import NiceRecord
from temper_core.steering.niceness import Niceness
from temper_core.steering.pin import PinPlace
from temper_core.steering.steerer import KernelSide, Steerer
from temper_core.steering.thread_probe import ThreadProbe

THREADS = """
import ctypes, sys, threading, time
name = ctypes.CDLL(None).prctl
def run(words):
    if words[0] == "spin":
        while True: pass
    while True: time.sleep(0.005)
def started(words):
    name(15, words[1].encode(), 0, 0, 0)
    tids[words[1]] = threading.get_native_id()
    ready.release()
    run(words)
tids, ready = {}, threading.Semaphore(0)
print("up", flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "rename":
        open(f"/proc/self/task/{tids[words[1]]}/comm", "w").write(words[2])
        print("renamed", flush=True)
        continue
    threading.Thread(target=started, args=(words,), daemon=True).start()
    ready.acquire()
    print(tids[words[1]], flush=True)
"""


class Workload:
    """A process whose threads are made, named and renamed at will."""

    def __init__(self, *words):
        command = [sys.executable, "-c", THREADS, *words]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ask("")

    @property
    def pid(self):
        return self.process.pid

    def thread(self, name, does="sleep"):
        return int(self._ask(f"{does} {name}\n"))

    def rename(self, name, to):
        self._ask(f"rename {name} {to}\n")

    def move_to(self, cgroup):
        (cgroup / "cgroup.procs").write_text(str(self.pid))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def _ask(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()
        return self.process.stdout.readline()


@frozen
class Cgroups:
    """Makes cgroups below one of the test's own."""

    root: object
    top: object

    def make(self, name):
        directory = self.top / name
        directory.mkdir(parents=True)
        return directory

    def path(self, directory):
        return str(directory.relative_to(self.root))


@pytest.fixture
def workload(cgroups):  # noqa: ARG001 - which can go only after its processes
    started = []

    def start(*words):
        started.append(Workload(*words))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture
def cgroups():
    root = detect_cgroups().unified
    if root is None or not os.access(root, os.W_OK):
        pytest.skip("this machine has no cgroup v2 that can be written to")
    top = root / f"temper-test-{os.getpid()}"
    top.mkdir()
    yield Cgroups(root, top)
    for directory, _, _ in os.walk(top, topdown=False):
        Path(directory).rmdir()


@pytest.fixture
def tree(cgroups):
    return CgroupTree(cgroups.root)


@pytest.fixture
def bpffs(tmp_path):
    mounted = tmp_path / "bpf"
    mounted.mkdir()
    done = subprocess.run(
        ["mount", "-t", "bpf", "bpf", str(mounted)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no BPF file system can be mounted here: {done.stderr.strip()}")
    yield mounted
    subprocess.run(["umount", "-l", str(mounted)], check=True)


@pytest.fixture(scope="session")
def bpf_allowed():
    found = access.probe()
    if not found.is_allowed:
        pytest.skip(f"BPF cannot be used here: {found.reason}")


@pytest.fixture
def make_steerer(bpf_allowed, bpffs, tree, tmp_path):  # noqa: ARG001 - skips where BPF cannot be used
    opened = []

    def make(sight=None, period_s=1.0):
        pin = PinPlace(bpffs / "temper" / "hints")
        kernel = KernelSide(SteeringKernel.open(), pin, tree)
        judge = Judge(sight or ThreadProbe())
        niceness = Niceness(NiceRecord(tmp_path), is_allowed=True)
        opened.append(Steerer(kernel, judge, Kicker(), niceness, period_s=period_s))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def steerer(make_steerer):
    return make_steerer()
