"""The kernel side of steering in the running kernel, and real threads for it to steer."""

import contextlib
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from temper_core.bpf import maps
from temper_core.bpf.access import probe
from temper_core.steering.kernel import SteeringKernel

SLEEPERS = """
import sys, threading
names = sys.argv[2:]
def live(name):
    open("/proc/thread-self/comm", "w").write(name)
    ready.wait()
    threading.Event().wait()
ready = threading.Barrier(len(names) + 1)
for name in names:
    threading.Thread(target=live, args=(name,), daemon=True).start()
open("/proc/self/comm", "w").write(sys.argv[1])
ready.wait()
print("ready", flush=True)
for line in sys.stdin:
    open("/proc/self/comm", "w").write(line.strip())
    print("renamed", flush=True)
"""


@pytest.fixture(scope="session")
def bpf_allowed():
    """Skip where BPF may not be used, with what the probe says of it."""
    access = probe()
    if not access.is_allowed:
        pytest.skip(access.reason)


@pytest.fixture
def kernel(request):
    request.getfixturevalue("bpf_allowed")
    with SteeringKernel.open() as opened:
        yield opened


@pytest.fixture
def spawn():
    """Start processes that live until the test ends; optionally in a cgroup from the first."""
    started = []

    def start(*command, cgroup=None, **options):
        prefix = ()
        if cgroup is not None:
            prefix = ("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', cgroup / "cgroup.procs")
        process = subprocess.Popen([*prefix, *command], **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        with contextlib.suppress(BrokenPipeError), process:
            process.wait()


@pytest.fixture
def sleepers(spawn):
    """Start a process of some name with threads of some names; it is renamed by what it reads."""

    def start(name, *threads, **options):
        command = (sys.executable, "-S", "-c", SLEEPERS, name, *threads)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = spawn(*command, **pipes, **options)
        assert process.stdout.readline() == "ready\n"
        return process

    return start


@pytest.fixture
def thread():
    """Start a thread of this process that sleeps until the test ends, and give its tid."""
    stop, started = threading.Event(), queue.Queue()

    def live():
        started.put(threading.get_native_id())
        stop.wait()

    running = threading.Thread(target=live)
    running.start()
    yield started.get()
    stop.set()
    running.join()


@pytest.fixture
def look(kernel):
    """Read what the kernel side says of one thread; without correcting anything before."""

    def at(tid, **options):
        kernel.walk(**{"write": False, **options})
        return next((record for record in kernel.records() if record.tid == tid), None)

    return at


@pytest.fixture
def poison(kernel):
    """Write a hint into the map from outside, as somebody with the rights to it could."""

    def write(pid, hint):
        hints, process = maps.open_by_id(kernel.map_id), os.pidfd_open(pid)
        maps.update(hints, process.to_bytes(4, sys.byteorder), hint.to_bytes(32, "little"))
        os.close(hints)
        os.close(process)

    return write


@pytest.fixture
def rename():
    """Give a thread of this process another name, as the thread itself would."""
    return lambda tid, name: Path(f"/proc/self/task/{tid}/comm").write_text(name)


@pytest.fixture
def bpffs(tmp_path):
    """A place for pins of its own; what is pinned goes with the mount."""
    command = ["mount", "-t", "bpf", "bpf", tmp_path]
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a bpffs: {mounted.stderr}")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)
