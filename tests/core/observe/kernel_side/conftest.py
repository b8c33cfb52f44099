"""Both tiers of the kernel side, and processes of known doings for them to look at."""

import contextlib
import os
import time

import pytest

from temper_core.bpf.access import explain_bpf_error
from temper_core.errors import BpfError
from temper_core.observe.kernel_side.kernel_threads import BpfThreads, IterThreads
from tests.core.observe.kernel_side.proc_reads import BUSY, stat_of, threads_of

PLENTY = 4_096


@pytest.fixture(params=[BpfThreads, IterThreads], ids=lambda kind: kind.tier)
def open_tier(request):
    """Open readers of one tier; they are closed in the end. Skip where the kernel refuses it."""
    with contextlib.ExitStack() as opened:

        def start(detail_threads=PLENTY, *, kind=request.param, **options):
            try:
                reader = kind.open(detail_threads, **options)
            except BpfError as error:
                pytest.skip(f"{kind.tier}: {explain_bpf_error(error).reason}")
            opened.callback(reader.close)
            return reader

        start.kind = request.param
        yield start


@pytest.fixture
def reader(open_tier):
    """A reader that has a row for every thread that ran."""
    return open_tier()


@pytest.fixture
def watched(reader):
    """Begin a window; the function returned ends it, and gives its rows, and begins the next."""
    clock_ns = reader.snapshot(0).clock_ns

    def look():
        nonlocal clock_ns
        rows = reader.snapshot(clock_ns)
        clock_ns = rows.clock_ns
        return rows

    return look


@pytest.fixture
def settle(wait_until):
    """Wait until no thread of *pid* runs or waits for a CPU, however busy the host."""

    def rests(pid):
        before = [stat_of(pid, tid) for tid in threads_of(pid)]
        time.sleep(0.02)
        after = [stat_of(pid, tid) for tid in threads_of(pid)]
        return before == after and all(fields[0] in "STt" for fields in after)

    def is_at_rest(pid):
        try:
            return rests(pid)
        except OSError:  # a thread has ended meanwhile
            return False

    return lambda pid: wait_until(lambda: is_at_rest(pid), "the process does not rest")


@pytest.fixture
def load(spawn):
    """Keep the machine busy, at the lowest priority."""
    for _ in range(2):
        os.setpriority(os.PRIO_PROCESS, spawn(BUSY).pid, 19)


@pytest.fixture
def spawn_in(spawn, unified, make_cgroup, settle):
    """Start a process in a cgroup of its own, and wait until it rests; gives it and the path."""

    def start(script, *arguments, name="inner"):
        folder = make_cgroup(name)
        child = spawn(script, *arguments)
        (folder / "cgroup.procs").write_text(str(child.pid))
        settle(child.pid)
        return child, f"{folder.relative_to(unified)}/"

    return start
