"""Traces for tests: events as a scheduler makes them, and what is said beside them."""

import io

import numpy as np

from temper_plugin_tracer.trace.events import PREEMPTED, SCHED_EVENT, Kind
from temper_plugin_tracer.trace.perfetto.writer import TraceWriter
from temper_plugin_tracer.trace.roster import CaptureFacts, TracedMachine, TracedThread

BEGAN_NS = 5_000_000_000_000
MACHINE = TracedMachine(("Linux", "6.12.1", "#1 SMP", "x86_64"), (0, 1, 2, 3), {0: 0, 1: 0, 2: 1})
FACTS = CaptureFacts(
    node="node-1",
    seconds=5.0,
    backend="bpf",
    selection="pod shop/mysql-0",
    asked_by="uid 0",
    bounds={"seconds": 5.0, "bytes": float(32 << 20)},
    ended_by="seconds",
    lost={0: 0, 3: 17},
    planned={"critical": (2, 3), "rest": (0, 1)},
    cpus=(0, 1, 3),
)


def threads(count: int) -> list[TracedThread]:
    """Return threads 1 to *count*, ten to a process."""
    return [
        TracedThread(tid, tgid_of(tid), f"worker {tid}", f"process {tgid_of(tid)}", *_labels(tid))
        for tid in range(1, count + 1)
    ]


def tgid_of(tid: int) -> int:
    """Return the process of a thread of ``threads``."""
    return tid - (tid - 1) % 10


def _labels(tid: int) -> tuple[str, str, str, str]:
    if tid % 3:
        return "", "", "", ""
    return f"shop/pod-{tgid_of(tid)}", "io", "critical", "critical"


def cpu_events(cpu: int, count: int, of_threads: int, seed: int = 0) -> np.ndarray:
    """Return events of one CPU, each at a time of its own, as the kernel would record them."""
    random = np.random.default_rng([seed, cpu])
    events = np.zeros(count, SCHED_EVENT)
    # Odd steps of a CPU's own residue, so that no two events of all CPUs are at one time.
    steps = random.integers(100, 60_000, count) * 64
    events["ns"] = BEGAN_NS + np.cumsum(steps) + cpu
    events["cpu"] = cpu
    events["kind"] = random.choice([*Kind], count, p=[0.45, 0.35, 0.06, 0.03, 0.03, 0.04, 0.04])
    running = 0
    for event, tid in zip(events, random.integers(1, of_threads + 1, count), strict=True):
        running = _fill(event, int(tid), running, random)
    return events


def _fill(event: np.void, tid: int, running: int, random: np.random.Generator) -> int:
    """Fill an event in and return the thread that runs after it."""
    kind = event["kind"]
    if kind > Kind.MIGRATION:
        event["next"] = random.integers(0, 10)
        return running
    event["prio"] = random.choice([120, 98, 139])
    event["next"], event["tgid"] = tid, tgid_of(tid)
    if kind == Kind.SWITCH:
        event["prev"], event["state"] = running, random.choice([PREEMPTED, 1, 2, 0x80])
        return tid
    event["target"] = random.integers(0, 4)
    if kind == Kind.WAKING:
        event["prev"], event["flags"] = running, random.integers(0, 2)
    else:
        event["prev"] = random.integers(0, 4)
    return running


def written(
    by_cpu: dict[int, np.ndarray],
    known: list[TracedThread],
    *,
    pieces: int = 1,
    facts: CaptureFacts | None = FACTS,
) -> bytes:
    """Return a trace with the events, written in *pieces* of each CPU."""
    out = io.BytesIO()
    writer = TraceWriter(out)
    writer.machine(MACHINE, {6: BEGAN_NS, 3: BEGAN_NS - 7, 1: 1_700_000_000_000_000_000})
    writer.threads(known, BEGAN_NS)
    for piece in range(pieces):
        for cpu, events in by_cpu.items():
            part = slice(len(events) * piece // pieces, len(events) * (piece + 1) // pieces)
            writer.events(cpu, events[part], {})
    if facts is not None:
        writer.facts(facts)
    assert writer.bytes_written == len(out.getvalue())
    return out.getvalue()


def in_time_order(by_cpu: dict[int, np.ndarray]) -> np.ndarray:
    """Return the events of all CPUs in time order."""
    events = np.concatenate(list(by_cpu.values()))
    return events[np.argsort(events["ns"], kind="stable")]
