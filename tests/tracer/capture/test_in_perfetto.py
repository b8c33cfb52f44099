"""A captured trace in the real trace_processor, held against the kernel's counts."""

import time

import pytest

from temper_core.testing import make_snapshot
from temper_plugin_tracer.capture.request import TraceRequest
from tests.tracer.capture.conftest import busy, schedstat, wait_until_recording
from tests.tracer.trace.equal_sums import assert_equal_sums
from tests.tracer.trace.trace_processor import LOSSES, TraceProcessor

ROUNDS = 300
LONG_S = 30.0
RUNS = """
select count(*), sum(dur) from sched join thread using (utid) where tid = {tid} and dur >= 0
"""
HIDDEN = """
select count(*) from sched join thread using (utid) join process using (upid)
where process.pid = 1
"""
WAKINGS = """
select count(*) from thread_state join thread using (utid)
where tid = {tid} and state = 'R' and waker_utid is not null
"""


def test_its_run_times_are_the_kernels_and_nothing_is_lost(captures, finish, spawn, tell):
    captures.tell(make_snapshot(monotonic_s=time.monotonic()))
    with busy(spawn, tell, ROUNDS) as (sleeper, go):
        begun = captures.begin(TraceRequest(seconds=LONG_S), "me")
        wait_until_recording()
        before = schedstat(sleeper.pid)
        go()
        time.sleep(0.05)
        after = schedstat(sleeper.pid)
        captures.end(begun["id"], "me")
        entry = finish(captures, begun["id"])
    assert entry["lost"] == 0
    processor = TraceProcessor(captures.trace(begun["id"]).read_bytes())
    try:
        assert processor.ask(LOSSES) == []
        [(runs, run_ns)] = processor.ask(RUNS.format(tid=sleeper.pid))
        [(hidden,)] = processor.ask(HIDDEN)
        [(wakings,)] = processor.ask(WAKINGS.format(tid=sleeper.pid))
        names = {name for (name,) in processor.ask("select name from track")}
    finally:
        processor.close()
    # A thread that takes the CPU from a hidden one has no begin.
    assert after[2] - before[2] - hidden <= runs <= after[2] - before[2]
    assert run_ns == pytest.approx(after[0] - before[0], rel=0.05)
    # So does a thread that a hidden one wakes.
    assert wakings >= 0.98 * ROUNDS
    assert {"Temper", "mode"} <= names


def test_run_times_waits_and_wake_ups_of_each_thread_are_those_of_the_analysis(
    captures, finish, spawn, tell
):
    with busy(spawn, tell, ROUNDS) as (sleeper, go):
        begun = captures.begin(TraceRequest(seconds=LONG_S), "me")
        wait_until_recording()
        go()
        captures.end(begun["id"], "me")
        finish(captures, begun["id"])
    sums, broken = assert_equal_sums(captures.trace(begun["id"]))
    assert sums[sleeper.pid][2] > ROUNDS / 2
    # A thread that takes the CPU from a hidden one lacks that switch.
    assert len(broken) < len(sums) / 4
