"""Captures of some CPUs: their events, and the waits on these CPUs, are those of the whole node."""

import os
import time
from collections import Counter
from contextlib import ExitStack

import pytest

from temper_plugin_tracer.capture.bpf_recorder import BpfRecorder
from temper_plugin_tracer.capture.near_events import is_about
from temper_plugin_tracer.capture.recording import boot_ns
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.trace.analysis.known import Known
from temper_plugin_tracer.trace.events import Kind, chosen
from tests.tracer.capture.conftest import merged
from tests.tracer.trace.scenes import analyzed, events, move, switch, wake
from tests.tracer.trace.slow_analysis import SlowAnalysis

ROAMER = """
import os, sys, time
print("ready", flush=True)
cpus = sorted(os.sched_getaffinity(0))
for turn in range(int(sys.argv[1])):
    os.sched_setaffinity(0, {cpus[(turn + os.getpid()) % len(cpus)]})
    ends = time.thread_time() + 0.001
    while time.thread_time() < ends: pass
    os.sched_setaffinity(0, set(cpus))
    time.sleep(0.0005)
sys.stdin.read()
"""
"""Works on one CPU after the other, and sleeps between."""
ROAMERS, TURNS, WORK_S, FEW = 5, 60, 0.7, 10
MISSED_SHARE = 0.01
"""Of the events, around the beginning and the end of a window of two clocks."""

needs_bpf = pytest.mark.usefixtures("bpf")


class WaitsByCpu(SlowAnalysis):
    """The slow analysis, with the waits and runs of each thread by CPU.

    A thread that is moved waits, even if its waking came while it still left its CPU.
    """

    def __init__(self):
        super().__init__()
        self.by_cpu = Counter()

    def pass_time(self, now):
        ns = now - (now if self.now is None else self.now)
        for tid, thread in self.threads.items():
            self.by_cpu[tid, thread.state, thread.cpu] += ns
        super().pass_time(now)

    def move(self, tid, source, target, now):
        if self.threads[tid].state != "waiting":
            self.enter(tid, "waiting", now, target)
        super().move(tid, source, target, now)


@pytest.fixture
def two_cpus():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("a thread cannot leave the only CPU")
    return cpus[:2]


def recorded_at_once(spawn, *selections):
    """Return what a recorder of each selection has seen of roaming threads, and their tids."""
    with ExitStack() as opened:
        recorders = [opened.enter_context(BpfRecorder.open(each)) for each in selections]
        for recorder in recorders:
            recorder.begin()
        began_ns = boot_ns()
        tids = [spawn(ROAMER, TURNS).pid for _ in range(ROAMERS)]
        time.sleep(WORK_S)
        ended_ns = boot_ns()
        for recorder in recorders:
            recorder.end()
        assert not any(recorder.losses().count for recorder in recorders)
        whole = [merged([recorder.drain()]) for recorder in recorders]
    return [each[(each["ns"] >= began_ns) & (each["ns"] < ended_ns)] for each in whole], tids


@needs_bpf
def test_a_recorder_of_a_cpu_has_all_events_about_it_and_no_others(spawn, two_cpus):
    first, second = two_cpus
    (whole, part), tids = recorded_at_once(spawn, Selection(), Selection(cpus=(second,)))

    assert is_about(part, (second,)).all()
    for kind in (Kind.SWITCH, Kind.WAKING, Kind.MIGRATION):
        counts = [counted(of(each, kind, (second,), tids)) for each in (whole, part)]
        missed = sum(((counts[0] - counts[1]) + (counts[1] - counts[0])).values())
        assert counts[0].total() > FEW, kind
        assert missed <= MISSED_SHARE * counts[0].total() + 2, kind
    moves = of(part, Kind.MIGRATION, (second,), tids)
    assert {first, second} <= {*moves["prev"].tolist()} & {*moves["target"].tolist()}


def of(block, kind, cpus, tids):
    """Return the events of a kind about *cpus* of the threads *tids*."""
    own = [each in tids for each in block["next"].tolist()]
    return block[(block["kind"] == kind) & is_about(block, cpus) & own]


def counted(block):
    return Counter(block[["prev", "next", "target", "state"]].tolist())


@needs_bpf
def test_waits_and_runs_of_a_cpu_are_those_that_the_whole_node_has_there(spawn, two_cpus):
    _, cpu = two_cpus
    (whole,), tids = recorded_at_once(spawn, Selection())
    truth = WaitsByCpu()
    for event in whole:
        truth.add(event)
    part = chosen(whole, is_about(whole, (cpu,)))

    table = analyzed(part, Known(recorded=frozenset({cpu}))).threads

    for tid in tids:
        row = table.row(tid)
        assert table.wait_ns[row] == truth.by_cpu[tid, "waiting", cpu] > 0
        assert table.run_ns[row] == truth.by_cpu[tid, "running", cpu] > 0


def test_a_thread_that_is_moved_away_waits_no_longer():
    block = events(
        switch(1_000, 0, 0, 9),
        wake(1_100, 9, 10, 0),
        move(1_150, 10, 0, 1),
        switch(9_000, 0, 9, 10),
    )

    table = analyzed(block, Known(recorded=frozenset({0}))).threads

    row = table.row(10)
    assert (table.wait_ns[row], table.waits[row], table.wakeups[row]) == (50, 0, 1)


def test_a_thread_that_is_moved_here_waits_from_then_on():
    block = events(
        switch(1_000, 0, 0, 9),
        move(1_150, 10, 1, 0),
        switch(1_400, 0, 9, 10),
    )

    table = analyzed(block, Known(recorded=frozenset({0}))).threads

    row = table.row(10)
    assert (table.wait_ns[row], table.waits_ns[row], table.wakeups[row]) == (250, 250, 0)
