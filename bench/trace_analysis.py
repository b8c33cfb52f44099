"""The time of analysing a trace, against trace_processor with a query for the same sums.

    python bench/trace_analysis.py [--events N] [--json]

Both have the trace loaded when the clock starts, and tell for each thread its run time, its wait,
and who ran on the CPU where it waited. trace_processor is Perfetto's own, as the WebAssembly that
runs in a browser. A native one is faster.
"""

import argparse
import io
import json
import sys
import time
from pathlib import Path

import numpy as np

from temper_plugin_tracer.trace.analysis.analyzer import Analyzer
from temper_plugin_tracer.trace.events import PREEMPTED, SCHED_EVENT, Kind
from temper_plugin_tracer.trace.perfetto.writer import TraceWriter
from temper_plugin_tracer.trace.roster import TracedMachine

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.tracer.trace.trace_processor import TraceProcessor

CPUS, THREADS, BLOCK = 4, 40, 1 << 16
WAKINGS, SLEEPS = 0.5, 0.7
"""Shares of wakings among the events, and of switches after which the thread sleeps."""
SUMS = "select utid, state, sum(dur) from thread_state where dur > 0 group by utid, state"
WAITS = """
create table waits as
select s.ts, s.dur, s.utid as waiter, r.cpu from thread_state s
join thread_state r on r.utid = s.utid and r.ts = s.ts + s.dur and r.state = 'Running'
where s.state in ('R', 'R+') and s.dur > 0;
select 1
"""
RUNS = "create table runs as select ts, dur, cpu, utid as runner from sched where dur > 0; select 1"
PAIRS = """
select waiter, runner, sum(min(w.ts + w.dur, r.ts + r.dur) - max(w.ts, r.ts))
from waits w join runs r
on r.cpu = w.cpu and r.ts < w.ts + w.dur and r.ts > w.ts - {longest} and r.ts + r.dur > w.ts
group by waiter, runner
"""


def made(count: int) -> np.ndarray:
    """Return *count* events of threads that wake others, queue up and preempt each other."""
    choice = np.random.default_rng(1)
    rows, now = [], 1_000_000
    queues: list[list[int]] = [[] for _ in range(CPUS)]
    current, asleep = [0] * CPUS, set(range(1, THREADS + 1))
    while len(rows) < count:
        now += int(choice.integers(200, 3_000))
        cpu = int(choice.integers(CPUS))
        if asleep and choice.random() < WAKINGS:
            tid, target = asleep.pop(), int(choice.integers(CPUS))
            queues[target].append(tid)
            rows.append((now, current[cpu], tid, 0, cpu, target, 0, 120, Kind.WAKING, 0, 0))
            continue
        prev, state = current[cpu], 1 if choice.random() < SLEEPS else PREEMPTED
        following = queues[cpu].pop(0) if queues[cpu] else 0
        if prev == following:
            continue
        if prev and state == 1:
            asleep.add(prev)
        elif prev:
            queues[cpu].append(prev)
        current[cpu] = following
        rows.append((now, prev, following, 0, cpu, cpu, state, 120, Kind.SWITCH, 0, 0))
    return np.array(rows, SCHED_EVENT)


def ours(events: np.ndarray) -> tuple[float, int]:
    """Return the seconds of the analysis, and the pairs that it found."""
    began = time.perf_counter()
    analyzer = Analyzer()
    for first in range(0, len(events), BLOCK):
        analyzer.add(events[first : first + BLOCK])
    keys, _ = analyzer.blockers.all()
    return time.perf_counter() - began, len(keys)


def theirs(events: np.ndarray) -> tuple[float, int]:
    """Return the seconds of the queries, and the pairs that they found."""
    out = io.BytesIO()
    writer = TraceWriter(out)
    cpus = tuple(range(CPUS))
    writer.machine(TracedMachine(("Linux", "6.18.0", "1", "x86_64"), cpus), {6: 1_000_000})
    names = {tid: f"thread-{tid}" for tid in range(1, THREADS + 1)}
    for cpu in cpus:
        writer.events(cpu, events[events["cpu"] == cpu], names)
    processor = TraceProcessor(out.getvalue())
    try:
        began = time.perf_counter()
        processor.ask(SUMS)
        processor.ask(WAITS)
        processor.ask(RUNS)
        longest = processor.ask("select max(dur) from runs")[0][0]
        processor.ask("create index runs_by_cpu on runs(cpu, ts); select 1")
        pairs = processor.ask(PAIRS.format(longest=longest))
        return time.perf_counter() - began, len(pairs)
    finally:
        processor.close()


def main() -> None:
    """Measure both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    events = made(options.events)
    (own_s, own_pairs), (their_s, their_pairs) = ours(events), theirs(events)
    result = {
        "events": len(events),
        "analysis_s": round(own_s, 3),
        "trace_processor_s": round(their_s, 3),
        "ratio": round(own_s / their_s, 3),
        "pairs": [own_pairs, their_pairs],
    }
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:18} {value}")


if __name__ == "__main__":
    main()
