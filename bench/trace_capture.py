"""The cost of a recorded event: of a capture, of ``perf`` and of ``trace-cmd``, in turn.

    python bench/trace_capture.py [--rounds N] [--trips N] [--json]

It needs root, BPF and tracefs. Two processes on one CPU pass a byte to and fro. What a recorder
adds to their CPU time is its cost in the threads that it observes. The recorder's own processes
are charged from the beginning of the round trips to their end, when the file is whole: Temper's
trace is encoded then. Without a recorder and with each one they run in turn, in another order each
round. The figures are medians. All are per switch or wake-up, of which there are equally many for
each recorder.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accounts import Account, start
from attrs import frozen
from bpf_programs import report
from tracers import END_S, ID, Recording, Tracer, tracers
from wakes import ns_per_trip, pong

from temper_plugin_tracer.trace.events import Kind
from temper_plugin_tracer.trace.perfetto.reader import PerfettoTrace

LEAD_S = 2.5
"""After it a recorder records, and its reading of the machine's threads is over."""
REST_S = 0.2


@frozen
class Run:
    """One recorder in one round.

    Attributes:
        trip_ns: CPU time of both processes for a round trip.
        own_s: CPU time of the recorder's processes.

    """

    trip_ns: float
    own_s: float
    recording: Recording


def run(tracer: Tracer, playing: Any, trips: int) -> tuple[Run, float]:  # noqa: ANN401 - a process
    """Record the round trips. Return what it took, and the events of the pair in Temper's trace."""
    with tempfile.TemporaryDirectory() as name, started(tracer, Path(name)) as account:
        folder = Path(name)
        time.sleep(LEAD_S)
        before = account.cpu_s
        trip_ns = ns_per_trip(playing)
        time.sleep(REST_S)
        tracer.end(folder, account.process)
        account.process.wait(END_S)
        own_s = account.cpu_s - before
        recording = tracer.read(folder)
        pair = _events_of_pair(folder / f"{ID}.pftrace", trips)
    return Run(trip_ns, own_s, recording), pair


@contextmanager
def started(tracer: Tracer, folder: Path) -> Iterator[Account]:
    """Start a recorder in a cgroup of its own, and end it."""
    account = start(tracer.name.split()[0], tracer.command(folder), tracer.environment)
    try:
        yield account
    finally:
        account.end()


def _events_of_pair(path: Path, trips: int) -> float:
    """Return the switches and wakings of a round trip, 0 if Temper has not recorded."""
    if not path.exists():
        return 0.0
    names = {"python", "python3", Path(sys.executable).name}
    trace = PerfettoTrace(path)
    tids = {each.tid for each in trace.threads if each.name in names}
    counts: dict[int, int] = {}
    for block in trace.blocks():
        for events in (block[block["kind"] == Kind.SWITCH], block[block["kind"] == Kind.WAKING]):
            for tid in tids:
                counts[tid] = counts.get(tid, 0) + int((events["next"] == tid).sum())
    return sum(sorted(counts.values())[-2:]) / trips


def measure(rounds: int, trips: int) -> dict[str, Any]:
    """Measure all recorders. The first of them is Temper's."""
    chosen = tracers()
    base: list[float] = []
    runs: dict[str, list[Run]] = {tracer.name: [] for tracer in chosen}
    pairs: list[float] = []
    with pong(trips) as playing:
        ns_per_trip(playing)
        for number in range(rounds):
            for tracer in _rotated(chosen, number):
                base.append(ns_per_trip(playing))
                done, pair = run(tracer, playing, trips)
                runs[tracer.name].append(done)
                pairs += [pair] if pair else []
    per_trip = statistics.median(pairs)
    return {
        "pair": {"trip_ns": round(statistics.median(base)), "events": round(per_trip, 2)},
        **_figures(runs, base, per_trip, trips),
    }


def _rotated(chosen: Sequence[Tracer], number: int) -> list[Tracer]:
    at = number % len(chosen)
    return [*chosen[at:], *chosen[:at]]


def _figures(
    runs: dict[str, list[Run]], base: list[float], per_trip: float, trips: int
) -> dict[str, dict[str, Any]]:
    """Return the cost of each recorder, and its ratio to that of Temper's."""
    figures: dict[str, dict[str, Any]] = {}
    without = statistics.median(base)
    for name, done in runs.items():
        in_threads = statistics.median(each.trip_ns - without for each in done) / per_trip
        own = statistics.median(each.own_s * 1e9 / each.recording.events for each in done)
        own_per_event = own * statistics.median(
            each.recording.events / (trips * per_trip) for each in done
        )
        figures[name] = {
            "in_threads_ns": round(in_threads),
            "own_processes_ns": round(own_per_event),
            "total_ns": round(in_threads + own_per_event),
            "recorded": round(statistics.median(each.recording.events for each in done)),
            "own_ns_per_recorded": round(own),
            "bytes_per_recorded": round(
                statistics.median(each.recording.bytes / each.recording.events for each in done), 1
            ),
            "lost": sum(each.recording.lost for each in done),
        }
    ours = next(iter(figures.values()))
    for found in figures.values():
        found["in_threads_ratio"] = round(ours["in_threads_ns"] / found["in_threads_ns"], 2)
        found["total_ratio"] = round(ours["total_ns"] / found["total_ns"], 2)
    return figures


if __name__ == "__main__":
    sys.exit(report(__doc__, measure, rounds=9, trips=30_000))
