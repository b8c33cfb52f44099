"""What a capture of one process costs the threads that it does not record.

    python bench/trace_narrow.py [--rounds N] [--trips N] [--json]

It needs root, BPF and two CPUs. Two processes on one CPU pass a byte to and fro. Meanwhile another
process, which wakes ten times a second on another CPU, is captured, or the whole node, or nothing,
in turn and in another order each round. The figures are medians. Costs are per switch or wake-up of
the two processes.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bpf_programs import report
from trace_capture import Run, run
from tracers import temper
from wakes import ns_per_trip, pong

SLEEPER = "import time\nwhile True: time.sleep(0.1)"


@contextmanager
def sleeper() -> Iterator[int]:
    """Start the captured process on the last CPU. Yield its pid."""
    with subprocess.Popen([sys.executable, "-S", "-c", SLEEPER]) as process:
        try:
            os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
            yield process.pid
        finally:
            process.kill()


def measure(rounds: int, trips: int) -> dict[str, Any]:
    """Measure both captures."""
    base: list[float] = []
    pairs: list[float] = []
    with pong(trips) as playing, sleeper() as pid:
        arms = {"node": temper(), "process": temper(pid)}
        runs: dict[str, list[Run]] = {name: [] for name in arms}
        added: dict[str, list[float]] = {name: [] for name in arms}
        ns_per_trip(playing)
        for number in range(rounds):
            for name in sorted(arms, reverse=number % 2 == 1):
                base.append(ns_per_trip(playing))
                done, pair = run(arms[name], playing, trips)
                runs[name].append(done)
                added[name].append(done.trip_ns - base[-1])
                pairs += [pair] if name == "node" else []
    events = statistics.median(pairs)
    return {
        "pair": {"trip_ns": round(statistics.median(base)), "events": round(events, 2)},
        **{name: _figures(runs[name], added[name], events) for name in arms},
    }


def _figures(runs: list[Run], added_ns: list[float], events: float) -> dict[str, float]:
    """Return the medians. *added_ns* is the growth of a trip over one without a capture before."""
    return {
        "in_threads_ns": round(statistics.median(added_ns) / events, 1),
        "own_processes_ms": round(statistics.median(r.own_s for r in runs) * 1e3, 1),
        "recorded": round(statistics.median(r.recording.events for r in runs)),
        "bytes": round(statistics.median(r.recording.bytes for r in runs)),
    }


if __name__ == "__main__":
    sys.exit(report(__doc__, measure, rounds=9, trips=30_000))
