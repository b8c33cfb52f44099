"""A program that starts threads without end takes neither the memory nor the room of a capture."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from temper_plugin_tracer.capture.bounds import LEAST_BYTES, MIB, Bounds, Ending
from temper_plugin_tracer.capture.captures import HELPER_MEMORY
from temper_plugin_tracer.capture.drained import Drained, Losses
from temper_plugin_tracer.capture.encoding import MOST_NAMED, Encoding, encode
from temper_plugin_tracer.capture.kernel_layout import NAME
from temper_plugin_tracer.capture.living_threads import LivingThreads
from temper_plugin_tracer.capture.near_events import NearEvents
from temper_plugin_tracer.capture.node_reading import NodeNotes
from temper_plugin_tracer.capture.raw_file import RawFile
from temper_plugin_tracer.capture.recording import Recorded
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.capture.trace_context import TraceContext
from temper_plugin_tracer.capture.tracefs.event_columns import Found
from temper_plugin_tracer.capture.tracefs.recorder import MOST_PARTS, TracefsRecorder
from temper_plugin_tracer.capture.unlinked_file import UnlinkedFile
from temper_plugin_tracer.trace.events import SCHED_EVENT, Kind
from temper_plugin_tracer.trace.perfetto.reader import PerfettoTrace

AT_ONCE = 20_000
BUSY = 7
"""A thread that runs between all others. It is the first that ran, and the last that is named."""


def storm(first, count):
    """Return switches to a busy thread and to *count* others in turn, and their names."""
    tids = np.arange(first, first + count)
    following = np.stack([np.full(count, BUSY), tids], axis=1).reshape(-1)
    switches = np.zeros(2 * count, SCHED_EVENT)
    switches["ns"] = (2 * first + np.arange(2 * count)) * 1_000
    switches["kind"], switches["state"], switches["prio"] = Kind.SWITCH, 1, 120
    switches["next"], switches["tgid"] = following, following
    switches["prev"][1:] = following[:-1]
    names = np.zeros(count + 1, NAME)
    names["tid"] = names["tgid"] = [*tids, BUSY]
    names["comm"] = b"worker"
    names["comm"][-1] = b"mysqld"
    return switches, names


def encoded(directory, count, bounds):
    with UnlinkedFile.create(directory) as raw_file, UnlinkedFile.create(directory) as trace:
        raw = RawFile(raw_file.descriptor)
        for first in range(100, 100 + count, AT_ONCE):
            switches, names = storm(first, min(AT_ONCE, 100 + count - first))
            raw.write(Drained({0: switches}, names))
        recorded = Recorded(0, 10**12, Ending.SECONDS, 2 * count, count, Losses())
        told = TraceContext(
            "x", "node-1", "uid 0", "bpf", Selection(), bounds, ((0, 0),), NodeNotes()
        )
        outcome = encode(Encoding(raw, recorded, told), trace.descriptor)
        return outcome, trace.publish("x.pftrace")


def test_the_busiest_threads_are_named_and_others_are_counted(tmp_path):
    count = MOST_NAMED + 10_000

    outcome, path = encoded(tmp_path, count, Bounds())

    trace = PerfettoTrace(path)

    assert outcome.unnamed == count + 1 - MOST_NAMED
    assert outcome.ending is Ending.SECONDS
    named = {thread.tid: thread.name for thread in trace.threads}
    assert (named[BUSY], len(named)) == ("mysqld", MOST_NAMED)
    assert sum(map(len, trace.blocks())) == 2 * count


def test_their_names_leave_room_for_events_in_the_smallest_trace(tmp_path):
    outcome, path = encoded(tmp_path, 20_000, Bounds(bytes=LEAST_BYTES))

    assert outcome.ending is Ending.BYTES
    assert outcome.events > 10_000
    assert BUSY in {thread.tid for thread in PerfettoTrace(path).threads}


def test_the_helper_has_enough_memory_for_a_thread_storm(tmp_path):
    """As many as three programs start in 30 s on two CPUs."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.tracer.capture.test_thread_storms import Bounds, encoded\n"
        "encoded(Path(sys.argv[1]), 800_000, Bounds())\n"
        "status = Path('/proc/self/status').read_text().split()\n"
        "print(int(status[status.index('VmHWM:') + 1]) * 1024)"
    )

    words = [sys.executable, "-c", program, str(tmp_path)]
    ended = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)

    assert int(ended.stdout) < HELPER_MEMORY


def test_ended_threads_are_forgotten_but_for_the_last(tmp_path):
    threads = LivingThreads(str(tmp_path))
    threads.fork(1, BUSY, b"mysqld", is_thread=False, ns=1)
    tracemalloc.start()
    try:
        for tid in range(100, 100_100):
            threads.fork(BUSY, tid, b"sh", is_thread=False, ns=tid)
            threads.end(tid, b"sh", tid)
            if tid == 150:
                threads.fork(BUSY, 101, b"again", is_thread=True, ns=tid)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert taken < 6 * MIB
    assert threads.rename(BUSY, b"io", 9)[2:5] == (BUSY, BUSY, b"io")
    assert threads.know(101, b"x", 9) is None
    assert threads.know(100_099, b"x", 9) is None
    assert threads.know(102, b"x", 9) is not None


class FullBuffer:
    """A buffer of a CPU that the kernel fills as fast as it is read."""

    cpus = (0,)
    bytes = 4096
    """Of a page."""

    def __init__(self):
        self.pages = self
        self.left = 1_000

    def read(self, *words):
        if len(words) == 2:
            return Found(np.zeros(1, SCHED_EVENT), (), {})
        self.left -= 1
        return bytes(words[-1]) if self.left >= 0 else b""

    def switch(self, *, is_on):
        pass


def test_a_buffer_that_stays_full_does_not_hold_a_drain():
    full = FullBuffer()
    recorder = TracefsRecorder(full, full, NearEvents())

    assert recorder.drain().count == MOST_PARTS
    assert recorder.drain().count == MOST_PARTS
    recorder.end()
    assert recorder.drain().count == 1_000 - 2 * MOST_PARTS


@pytest.mark.parametrize("most", [1, 2])
def test_the_process_of_a_busy_thread_is_named_with_it(tmp_path, monkeypatch, most):
    monkeypatch.setattr("temper_plugin_tracer.capture.encoding.MOST_NAMED", most)

    outcome, path = encoded(tmp_path, 100, Bounds())

    assert [thread.name for thread in PerfettoTrace(path).threads if thread.tid == BUSY] == [
        "mysqld"
    ]
    assert outcome.unnamed == 101 - most
