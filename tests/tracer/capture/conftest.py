"""Captures in the running kernel, for tests."""

import os
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from temper_core.bpf.access import probe
from temper_core.testing import MadeContext
from temper_plugin_tracer.capture.bpf_recorder import PROGRAMS
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.store import TRACE
from temper_plugin_tracer.trace.events import SCHED_EVENT, Kind
from tests.core.observe.conftest import cgroup, let_run, settle, spawn, tell, wait_until
from tests.own_host import NO_OWN_HOSTS, OwnHost, has_own_hosts
from tests.patience import PATIENCE_S

__all__ = ["cgroup", "let_run", "settle", "spawn", "tell", "wait_until"]

MIB = 1024 * 1024
LONG_S = 30.0
STORM = """
import os, sys
print("ready", flush=True)
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(there[1])
    os.close(0)
    os.close(1)
    while os.write(back[1], os.read(there[0], 1)): pass
    os._exit(0)
os.close(back[1])
while True:
    os.write(there[1], b"x")
    os.read(back[0], 1)
"""
"""Switches as fast as the kernel can."""
OPENING_S = 0.2
"""From the last link to the recording, on a busy host."""
SLEEPER = """
import os, sys, time
if len(sys.argv) > 1:
    os.sched_setaffinity(0, {int(sys.argv[1])})
work_s = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0005
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        time.sleep(0.0005)
        ends = time.thread_time() + work_s
        while time.thread_time() < ends: pass
    print("done", flush=True)
"""
"""Sleeps, and works for half a millisecond or as long as it is told, as often as it is told."""
SPIN = """
import os, sys
if len(sys.argv) > 1:
    os.sched_setaffinity(0, {int(sys.argv[1])})
print("ready", flush=True)
while True: pass
"""


@pytest.fixture(scope="session")
def bpf():
    """Skip with the reason where BPF is refused."""
    access = probe()
    if not access.is_allowed:
        pytest.skip(f"BPF is refused here: {access.reason}")


@pytest.fixture
def context(tmp_path):
    """The context of an instrument whose helpers are real processes."""
    made = MadeContext(folder=tmp_path, with_processes=True, state_limit_bytes=264 * MIB)
    yield made
    made.close()


@pytest.fixture
def captures(bpf, context, tmp_path):
    """The captures of an agent of its own."""
    del bpf
    opened = Captures(context, lock_directory=tmp_path / "run", free_bytes=0)
    yield opened
    opened.close()


@pytest.fixture
def finish():
    """Wait until a capture is over, and return its entry."""

    def wait(captures, capture):
        deadline = time.monotonic() + PATIENCE_S
        while captures.is_running(capture):
            assert time.monotonic() < deadline, captures.documents()
            time.sleep(0.02)
        return next(entry for entry in captures.documents() if entry["id"] == capture)

    return wait


@contextmanager
def busy(spawn, tell, rounds=1, work_s=0.0005):
    """Make a sleeper and a spinner that share a CPU, and yield the sleeper and how to let it go."""
    cpu = min(os.sched_getaffinity(0))
    sleeper = spawn(SLEEPER, cpu, work_s)
    spawn(SPIN, cpu)
    yield sleeper, lambda: tell(sleeper, rounds)


def merged(drains):
    """Return the events of all drains in time order."""
    parts = [events for drained in drains for events in drained.events.values()]
    events = np.concatenate(parts) if parts else np.zeros(0, SCHED_EVENT)
    return events[np.argsort(events["ns"], kind="stable")]


def until(question):
    """Ask *question* until it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not question():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def wait_until_recording(agent="self"):
    """Wait until the helper of a process that captures has attached all programs."""
    until(lambda: any(map(has_attached, children(agent))))
    time.sleep(OPENING_S)


def children(process="self"):
    """Return the children of a process."""
    lists = Path(f"/proc/{process}/task").glob("*/children")
    return [int(pid) for listed in lists for pid in listed.read_text().split()]


def has_attached(pid):
    """Return whether a process holds the links of all programs of the recorder."""
    links = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            links += "bpf_link" in str(descriptor.readlink())
    return links >= len(PROGRAMS)


def merged_blocks(trace):
    """Return all events of an opened trace."""
    return np.concatenate([np.zeros(0, SCHED_EVENT), *trace.blocks()])


HIDDEN_PROCESS = 1
"""Some virtual machines hide the first process, their host's agent, from BPF programs. A thread
that takes the CPU from one of its threads has no begin in a trace, and has no waking if a timer
wakes it while such a thread runs."""


def hidden_threads():
    """Return the ids of the threads whose events BPF programs may miss."""
    return [int(path.name) for path in Path(f"/proc/{HIDDEN_PROCESS}/task").iterdir()]


def run_of(events, tid):
    """Return how often a thread got a CPU, and for how long it ran, by the switches.

    The time is None where a begin is hidden. Such a run is counted by its end.
    """
    switches = events[events["kind"] == Kind.SWITCH]
    begins = switches["ns"][switches["next"] == tid].astype(np.int64)
    ends = switches["ns"][switches["prev"] == tid].astype(np.int64)
    run_ns = int(ends.sum() - begins.sum()) if len(ends) == len(begins) else None
    return len(begins) + hidden_runs(switches, tid), run_ns


def hidden_runs(switches, tid):
    """Return how often a thread took a CPU from one of the hidden process."""
    hidden = 0
    for cpu in set(switches["cpu"].tolist()):
        own = switches[switches["cpu"] == cpu]
        is_after = (own["tgid"][:-1] == HIDDEN_PROCESS) & (own["next"][:-1] != tid)
        hidden += int((is_after & (own["prev"][1:] == tid)).sum())
    return hidden


def schedstat(tid):
    """Return run time, wait and number of runs of a thread (proc(5))."""
    return tuple(map(int, Path(f"/proc/{tid}/schedstat").read_text().split()))


def files_of(captures):
    """Return the names in the directory of the captures, once all that is begun is done."""
    captures.files.disk.ask(lambda: None)
    return sorted(path.name for path in captures.store.directory.iterdir())


def traces_of(captures):
    """Return the finished traces."""
    return [name for name in files_of(captures) if name.endswith(TRACE)]


def kill(pid):
    """Kill a process, and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} does not end"
        time.sleep(0.01)


def is_alive(pid):
    """Return whether a process runs; a zombie does not."""
    with suppress(OSError):
        line = Path(f"/proc/{pid}/stat").read_text()
        return line[line.rindex(")") + 2] not in "ZX"
    return False


@contextmanager
def own_host(folder):
    """Make a host with nothing on it."""
    if not has_own_hosts():
        pytest.skip(NO_OWN_HOSTS)
    own = OwnHost(folder)
    try:
        yield own
    finally:
        own.close()


@contextmanager
def agent_on(host):
    """Run an agent on the host, and give its settings."""
    path = host.settings("agent")
    process = host.start(path)
    try:
        yield path
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


@pytest.fixture
def host(tmp_path):
    with own_host(tmp_path) as own:
        yield own


@pytest.fixture
def settings(host):
    """The settings of an agent that runs on the host."""
    with agent_on(host) as path:
        yield path
