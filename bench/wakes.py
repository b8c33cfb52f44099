"""The cost of watching wake-ups and waits: per event, per window, and of loading.

    python bench/wakes.py [--rounds N] [--trips N] [--threads N] [--json]

It needs root and a kernel that allows BPF. Two processes on one CPU pass a byte to and fro. A
round trip is two switches and up to two wake-ups. It runs alternately without the programs, with
them attached to a window that is over, and with an open one. The figure is the CPU time of both
processes, in which the programs run, so other work on the machine has little effect.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from bpf_programs import counted_by_kernel, mean_run_ns, report
from observe_tick import threads_running

from temper_core.observe.places import Places
from temper_plugin_tracer.kernel import WakeKernel, WindowCounts
from temper_plugin_tracer.roster import PartyRoster, ThreadCgroups
from temper_plugin_tracer.telling import tell_window

LONG_S = 60.0
SHORT_S = 1e-6
PONG = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
there, back, results = os.pipe(), os.pipe(), os.pipe()
child = os.fork()
is_ping = child != 0
read_from, write_to = (back[0], there[1]) if is_ping else (there[0], back[1])
def play(trips):
    before = time.process_time_ns()
    for _ in range(trips):
        if is_ping:
            os.write(write_to, b"x")
        os.read(read_from, 1)
        if not is_ping:
            os.write(write_to, b"x")
    return time.process_time_ns() - before
trips = int(sys.argv[1])
if not is_ping:
    os.close(there[1])
    while True:
        os.write(results[1], play(trips).to_bytes(8, "little"))
for line in sys.stdin:
    spent = play(trips) + int.from_bytes(os.read(results[0], 8), "little")
    print(spent / trips, flush=True)
os.kill(child, 9)
os.wait()
"""


@contextmanager
def pong(trips: int) -> Iterator[subprocess.Popen[str]]:
    """Start the pair, which makes so many round trips on each command."""
    command = [sys.executable, "-S", "-c", PONG, str(trips)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as playing:
        yield playing
        playing.communicate()


def ns_per_trip(playing: subprocess.Popen[str]) -> float:
    """Run the pair once. Return the CPU time of both per round trip."""
    assert playing.stdin is not None  # noqa: S101 - for the type checker
    assert playing.stdout is not None  # noqa: S101 - for the type checker
    playing.stdin.write("go\n")
    playing.stdin.flush()
    return float(playing.stdout.readline())


def in_turn(kernel: WakeKernel, rounds: int, trips: int) -> dict[str, float]:
    """Run it without programs, beside a window that is over, and in an open one, alternately."""
    spent: dict[str, list[float]] = {"without": [], "over": [], "open": []}
    counts: list[WindowCounts] = []
    with pong(trips) as playing:
        for round_number in range(rounds + 1):
            without = ns_per_trip(playing)
            kernel.begin(SHORT_S)
            over = ns_per_trip(playing)
            kernel.end()
            kernel.begin(LONG_S)
            opened = ns_per_trip(playing)
            counts.append(kernel.end())
            if round_number:  # the first round warms the caches
                for name, taken in zip(spent, (without, over, opened), strict=True):
                    spent[name].append(taken)
    figures = {f"{name}_ns": round(_lower_quartile(taken), 1) for name, taken in spent.items()}
    base = figures["without_ns"]
    events = statistics.median(window.switches + window.wakes for window in counts) / trips
    own_ns = [window.kernel_s * 1e9 / (window.switches + window.wakes) for window in counts]
    return figures | {
        "events_per_trip": round(events, 2),
        "over_ns_per_event": round((figures["over_ns"] - base) / events, 1),
        "open_ns_per_event": round((figures["open_ns"] - base) / events, 1),
        "open_ratio": round(figures["open_ns"] / base, 3),
        "charged_ns_per_event": round(statistics.median(own_ns), 1),
    }


def _lower_quartile(values: list[float]) -> float:
    return sorted(values)[len(values) // 4]


def kernels_count(kernel: WakeKernel, trips: int) -> dict[str, int]:
    """Return the kernel's mean ns per run of each program."""
    with counted_by_kernel(), pong(trips) as playing:
        kernel.begin(LONG_S)
        ns_per_trip(playing)
        kernel.end()
        programs = kernel._skeleton.programs  # noqa: SLF001 - nothing but a bench asks for these
        return {f"{name}_ns": mean_run_ns(fd) for name, fd in programs.items()}


def window_ms(kernel: WakeKernel, rounds: int) -> dict[str, float]:
    """Return the cost of a window of one second besides counting, and the size of its result."""
    begin_ms, end_ms, name_ms = [], [], []
    homes, places = ThreadCgroups(), Places(None)
    counted = WindowCounts(0.0)
    for _ in range(rounds):
        marks = [time.thread_time()]
        kernel.begin(1.0)
        marks.append(time.thread_time())
        time.sleep(1.0)
        counted = kernel.end()
        marks.append(time.thread_time())
        tell_window(counted, PartyRoster(counted.parties, None, places, homes), at=time.time())
        marks.append(time.thread_time())
        for spent, (start, end) in zip((begin_ms, end_ms, name_ms), pairwise(marks), strict=True):
            spent.append((end - start) * 1e3)
    return {
        "threads": len(counted.parties),
        "edges": len(counted.edges),
        "switches": counted.switches,
        "attach_ms": round(statistics.median(begin_ms), 2),
        "detach_and_read_ms": round(statistics.median(end_ms), 2),
        "name_ms": round(statistics.median(name_ms), 2),
        "counting_ms": round(counted.kernel_s * 1e3, 2),
    }


def load_ms(rounds: int) -> dict[str, float]:
    """Return the CPU time of loading the object once."""
    taken = []
    for _ in range(rounds):
        began = time.thread_time()
        WakeKernel.open().close()
        taken.append((time.thread_time() - began) * 1e3)
    return {"cpu_ms": round(statistics.median(taken), 1)}


def measure(rounds: int, trips: int, threads: int) -> dict[str, Any]:
    """Measure everything once."""
    figures: dict[str, Any] = {"load": load_ms(5)}
    with WakeKernel.open() as kernel:
        figures["pong"] = in_turn(kernel, rounds, trips)
        figures["kernel"] = kernels_count(kernel, trips)
        figures["quiet"] = window_ms(kernel, 3)
        with threads_running(threads, 1):
            figures["busy"] = window_ms(kernel, 3)
    return figures


if __name__ == "__main__":
    sys.exit(report(__doc__, measure, rounds=15, trips=20_000, threads=5_000))
