"""Sums of the analysis equal those of Perfetto's trace_processor over the same trace."""

import io
from pathlib import Path

import numpy as np
import pytest

from temper_plugin_tracer.trace.events import Kind
from temper_plugin_tracer.trace.perfetto.writer import TraceWriter
from temper_plugin_tracer.trace.reading import open_trace
from temper_plugin_tracer.trace.roster import TracedMachine
from tests.tracer.trace.equal_sums import STATES, WAKEUPS
from tests.tracer.trace.scenes import analyzed
from tests.tracer.trace.trace_processor import TraceProcessor

SAMPLE = Path(__file__).parent / "samples" / "perf-script.txt"
AS_RELEASED = ("Linux", "6.18.0", "1", "x86_64")


def perfetto(block, names):
    out = io.BytesIO()
    writer = TraceWriter(out)
    machine = TracedMachine(utsname=AS_RELEASED, cpus=(0, 1))
    writer.machine(machine, {6: int(block["ns"][0]), 3: int(block["ns"][0])})
    for cpu in np.unique(block["cpu"]).tolist():
        writer.events(cpu, block[block["cpu"] == cpu], names)
    return out.getvalue()


@pytest.fixture(scope="module")
def recording():
    trace = open_trace(SAMPLE)
    block = np.concatenate([*trace.blocks()])
    return block, {thread.tid: thread.name for thread in trace.threads}


@pytest.fixture(scope="module")
def processor(recording):
    processor = TraceProcessor(perfetto(*recording))
    yield processor
    processor.close()


def ran_before(block):
    """Return the threads that leave a CPU in its first switch, so that no trace has their begin."""
    switches = block[block["kind"] == Kind.SWITCH]
    return {int(switches["prev"][switches["cpu"] == cpu][0]) for cpu in (0, 1)}


def test_run_time_and_waits_of_each_thread_are_equal(recording, processor):
    table, without = analyzed(recording[0]).threads, ran_before(recording[0])

    found = {
        tid: (run, wait)
        for tid, run, wait in processor.ask(STATES.format(end_ns=recording[0]["ns"][-1]))
        if (run or wait) and tid not in without
    }

    ours = {
        int(tid): (int(run), int(wait))
        for tid, run, wait in zip(table.tids, table.run_ns, table.wait_ns, strict=True)
        if (run or wait) and int(tid) not in without
    }
    assert len(ours) > len(without)
    assert ours == found


def test_wake_ups_of_each_thread_are_equal(recording, processor):
    table = analyzed(recording[0]).threads

    found = dict(processor.ask(WAKEUPS))

    ours = {int(t): int(n) for t, n in zip(table.tids, table.wakeups, strict=True) if n}
    assert ours == found
