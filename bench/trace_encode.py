"""Encoding scheduler events for Perfetto, against the protobuf package, and reading them back."""

import io
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from temper_plugin_tracer.trace.events import PREEMPTED, SCHED_EVENT, Kind
from temper_plugin_tracer.trace.perfetto.reader import PerfettoTrace
from temper_plugin_tracer.trace.perfetto.writer import TraceWriter
from temper_plugin_tracer.trace.roster import TracedThread

EVENTS, THREADS, ROUNDS = 200_000, 2_000, 5
STEP_NS = 10_000
"""Mean time between two events of a CPU: 100,000 a second."""


def measure() -> dict[str, Any]:
    """Return µs and bytes per event of both writers, their ratios, and µs per event read."""
    events = made()
    ours, content = fastest(lambda: encoded(events))
    of_threads, roster = fastest(lambda: encoded(events[:0]))
    theirs, packets = fastest(lambda: encoded_by_protobuf(events))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_bytes(content)
        reading, _ = fastest(lambda: sum(map(len, PerfettoTrace(path).blocks())))
    return {
        "events": EVENTS,
        "encode_us": round(ours, 3),
        "encode_bytes": round(len(content) / EVENTS, 2),
        "encode_us_without_threads": round(ours - of_threads, 3),
        "encode_bytes_without_threads": round((len(content) - len(roster)) / EVENTS, 2),
        "protobuf_us": round(theirs, 3),
        "protobuf_bytes": round(len(packets) / EVENTS, 2),
        "us_to_protobuf": round(ours / theirs, 3),
        "bytes_to_protobuf": round(len(content) / len(packets), 3),
        "read_us": round(reading, 3),
    }


def made() -> np.ndarray:
    """Return switches and wakings of one CPU: each thread that is woken runs, then idle does."""
    random = np.random.default_rng(1)
    events = np.zeros(EVENTS, SCHED_EVENT)
    events["ns"] = 10**13 + np.cumsum(random.integers(1, 2 * STEP_NS, EVENTS))
    events["kind"] = random.choice([Kind.SWITCH, Kind.WAKING], EVENTS, p=[0.6, 0.4])
    switches = np.flatnonzero(events["kind"] == Kind.SWITCH)
    events["next"] = random.integers(1, THREADS, EVENTS)
    events["next"][switches[::2]] = 0
    events["tgid"] = events["next"]
    ran = np.concatenate([[0], events["next"][switches]])
    events["prev"] = ran[np.searchsorted(switches, np.arange(EVENTS), "left")]
    events["state"] = random.choice([PREEMPTED, 1, 1, 1], EVENTS)
    events["prio"], events["target"] = 120, random.integers(0, 4, EVENTS)
    return events


def encoded(events: np.ndarray) -> bytes:
    """Return the events as ``TraceWriter`` writes them."""
    out = io.BytesIO()
    writer = TraceWriter(out)
    writer.threads([TracedThread(tid, tid, f"thread-{tid}") for tid in range(1, THREADS)], 10**13)
    writer.events(0, events, {})
    return out.getvalue()


def encoded_by_protobuf(events: np.ndarray) -> bytes:
    """Return the events as messages of the protobuf package, one for each event."""
    trace = protos.Trace()
    bundle = trace.packet.add().ftrace_events
    for ns, prev, tid, target, state, prio, kind in events[
        ["ns", "prev", "next", "target", "state", "prio", "kind"]
    ].tolist():
        event = bundle.event.add(timestamp=ns, pid=prev)
        if kind == Kind.SWITCH:
            switch = event.sched_switch
            switch.prev_pid, switch.prev_state = prev, state
            switch.next_pid, switch.next_prio, switch.next_comm = tid, prio, f"thread-{tid}"
        else:
            waking = event.sched_waking
            waking.pid, waking.prio, waking.target_cpu = tid, prio, target
            waking.comm = f"thread-{tid}"
    return trace.SerializeToString()


def fastest(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least CPU µs per event of several calls, and what the last one returned."""
    spent, result = [], None
    for _ in range(ROUNDS):
        began = time.process_time()
        result = work()
        spent.append(time.process_time() - began)
    return min(spent) * 1e6 / EVENTS, result


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
