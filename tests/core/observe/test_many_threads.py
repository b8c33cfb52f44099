"""20,000 real threads: every tier counts all, tells of those that ran, and forgets the dead."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from temper_core.bpf.access import explain_bpf_error
from temper_core.errors import BpfError
from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.kernel_side.kernel_threads import BpfThreads, IterThreads
from temper_core.observe.threads import ProcThreads

PROCESSES, EACH = 20, 1_000
CROWD = """
import ctypes, sys
library, attributes = ctypes.CDLL(None), ctypes.create_string_buffer(64)
library.pthread_attr_init(attributes)
library.pthread_attr_setstacksize(attributes, ctypes.c_size_t(16384))
one, pause = ctypes.c_ulong(), ctypes.cast(library.pause, ctypes.c_void_p)
for _ in range(int(sys.argv[1]) - 1):
    if library.pthread_create(ctypes.byref(one), attributes, pause, None): sys.exit('no thread')
print('up', flush=True)
sys.stdin.read()
"""
OPENERS = {
    "bpf": BpfThreads.open,
    "bpf-iter": IterThreads.open,
    "proc": lambda: ProcThreads(budget=DescriptorBudget()),
}


@pytest.fixture(scope="module")
def crowd():
    """Processes with threads that sleep, and enough of the kernel's numbers for them."""
    alive = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    for name in ("pid_max", "threads-max"):
        if int(Path("/proc/sys/kernel", name).read_text()) < 1.1 * (alive + PROCESSES * EACH):
            pytest.skip(f"kernel.{name} is too low for so many threads")
    if int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) < 4 << 20:
        pytest.skip("less than 4 GiB of memory are left")
    with ExitStack() as started:
        processes = [started.enter_context(some_threads()) for _ in range(PROCESSES)]
        started.callback(lambda: [process.kill() for process in processes])
        for process in processes:
            assert process.stdout.readline() == b"up\n"
        yield processes


def some_threads():
    command = [sys.executable, "-S", "-c", CROWD, str(EACH)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.fixture(params=OPENERS)
def reader(request):
    try:
        reader = OPENERS[request.param]()
    except BpfError as error:
        pytest.skip(f"{request.param}: {explain_bpf_error(error).reason}")
    yield reader
    reader.close()


def test_all_threads_are_counted_and_those_that_ran_are_told(crowd, reader):
    base = reader.snapshot(0)
    pid = crowd[0].pid
    rouse(pid)

    rows = reader.snapshot(base.clock_ns)

    told = [row.tid for row in rows.rows if row.tgid == pid]
    rest = sum(sums.threads for sums in rows.rest.values())
    assert base.threads_seen >= len(crowd) * EACH
    assert rows.threads_seen >= len(crowd) * EACH
    assert len(set(told)) == len(told)
    assert len(told) + rest >= EACH
    assert rows.defects == ()


def rouse(pid):
    """Have every thread of a child run for a moment: it has stopped once all of them have."""
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    os.kill(pid, signal.SIGCONT)


def test_threads_that_have_all_ended_leave_nothing_behind(crowd, reader, names_in):
    base = reader.snapshot(0)
    descriptors = len(names_in("/proc/self/fd"))
    last = crowd.pop()
    last.kill()
    last.wait()

    rows = reader.snapshot(base.clock_ns)

    gone = base.threads_seen - rows.threads_seen
    assert rows.defects == ()
    assert gone > EACH / 2
    assert len(names_in("/proc/self/fd")) <= descriptors
    assert [row.tid for row in rows.rows if row.tgid == last.pid] == []
