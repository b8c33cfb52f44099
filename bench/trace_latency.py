"""What a capture does to the latency of a loaded server.

    python bench/trace_latency.py [--rounds N] [--period P] [--others PERCENT] [--json]

It needs root, BPF, a C compiler and a cgroup v2 hierarchy. The ladder's open-loop request server
answers requests at random intervals, whose mean is P microseconds, without a pause. In each round
it is observed for a second without a capture, with a capture of the whole node, and with the BPF
programs of one that nobody drains, in a random order. Requests count by their intended arrival,
and those that arrive within 0.1 s of a change are left out.

A second counts if all other processes of the machine took less than PERCENT of one CPU. The server
and the recorder are no others. The figures are medians of these seconds. A change is against the
seconds without a capture, with the middle 95 % of ``RESAMPLES`` bootstrap samples of the seconds.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from attrs import frozen
from bpf_programs import report

from temper_core.node.cgroups import detect_cgroups
from temper_plugin_tracer.capture.bounds import Bounds
from temper_plugin_tracer.capture.bpf_recorder import BpfRecorder
from temper_plugin_tracer.capture.raw_file import RawFile
from temper_plugin_tracer.capture.recording import record
from temper_plugin_tracer.capture.selection import Selection

LOAD = Path(__file__).parent / "ladder" / "load.c"
TURNS = 200_000
"""The work of a request: 0.1 ms or more."""
SEGMENT_S, MARGIN_S, START_S = 1.0, 0.1, 2.0
SHARES = {"p50": 0.5, "p99": 0.99}
BASE = "without"
SCHEDSTAT = "*/schedstat"
RESAMPLES, SEED = 1_000, 1


@frozen
class Segment:
    """A second of one case, by CLOCK_MONOTONIC in ns.

    Attributes:
        own_s: CPU time of the recorder.
        others_s: CPU time of processes that are neither the recorder nor the server.

    """

    case: str
    began_ns: int
    ended_ns: int
    events: int
    own_s: float
    others_s: float


class Cases:
    """What runs while the server is observed."""

    def __init__(self, recorder: BpfRecorder, raw: int) -> None:
        self._recorder = recorder
        self._raw = raw

    def without(self) -> int:
        """Do nothing."""
        time.sleep(SEGMENT_S)
        return 0

    def programs(self) -> int:
        """Record into the rings only."""
        self._recorder.begin()
        time.sleep(SEGMENT_S)
        self._recorder.end()
        return self._recorder.drain().count

    def capture(self) -> int:
        """Record as the helper process of a capture does."""
        os.ftruncate(self._raw, 0)
        os.lseek(self._raw, 0, os.SEEK_SET)
        raw, bounds = RawFile(self._raw), Bounds(seconds=SEGMENT_S, free_bytes=0)
        return record(self._recorder, raw, self._raw, bounds, lambda: None).events

    def by_name(self) -> Mapping[str, Callable[[], int]]:
        """Return all cases."""
        return {BASE: self.without, "programs": self.programs, "capture": self.capture}


@contextmanager
def serving(folder: Path, seconds: float, period_us: int) -> Iterator["subprocess.Popen[str]"]:
    """Serve requests for *seconds*. Yield when the first is near."""
    program = folder / "load"
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, LOAD, "-lm", "-ldl"], check=True)
    options = {"seconds": seconds, "period_us": period_us, "turns": TURNS, "arrivals": 1}
    words = [str(program), "serve", *(f"{key}={value}" for key, value in options.items())]
    with (
        (folder / "served").open("w+") as file,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=file, text=True) as server,
    ):
        time.sleep(START_S)
        try:
            yield server
        finally:
            server.kill()


def observed(rounds: int, server: int) -> Iterator[Segment]:
    """Run all cases in each round, in a random order. *server* is the server's process id."""
    order = random.Random(SEED)  # noqa: S311 - an order of measurements
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # as a helper process has it
    with BpfRecorder.open(Selection()) as recorder, tempfile.TemporaryFile() as raw:
        cases = Cases(recorder, raw.fileno()).by_name()
        for _ in range(rounds):
            for case in order.sample(list(cases), len(cases)):
                began_ns, before = time.monotonic_ns(), Spent.now(server)
                events = cases[case]()
                after, ended_ns = Spent.now(server), time.monotonic_ns()
                own_s, others_s = after.own_s - before.own_s, after.others_s - before.others_s
                yield Segment(case, began_ns, ended_ns, events, own_s, others_s)


@frozen
class Spent:
    """CPU time so far of this process, and of all but this one and the server."""

    own_s: float
    others_s: float

    @classmethod
    def now(cls, server: int) -> Self:
        """Return the CPU times, by the kernel's counts in ns and us."""
        lines = (unified_root() / "cpu.stat").read_text().splitlines()
        all_s = int(dict(line.split() for line in lines)["usage_usec"]) / 1e6
        counts = [
            path.read_text().split()[0] for path in Path(f"/proc/{server}/task").glob(SCHEDSTAT)
        ]
        own_s = time.process_time()
        return cls(own_s, all_s - own_s - sum(map(int, counts)) / 1e9)


def unified_root() -> Path:
    """Return the root of the cgroup v2 hierarchy. Raises SystemExit if there is none."""
    unified = detect_cgroups().unified
    if unified is None:
        raise SystemExit("bench: needs a cgroup v2 hierarchy")
    return unified


def requests_of(server: "subprocess.Popen[str]", folder: Path) -> list[tuple[int, int]]:
    """Return arrival and latency of all requests, when the server has ended."""
    path = folder / "served"
    while not path.read_bytes().endswith(b"]}\n"):
        if server.poll() is not None:
            raise SystemExit("bench: the server has ended early")
        time.sleep(1)
    document = json.loads(path.read_text().splitlines()[-1])
    return [(arrival, wait + service) for wait, service, arrival in document["requests"]]


def measure(rounds: int, period: int, others: int) -> dict[str, Any]:
    """Observe the server in all cases. Return the figures of each."""
    seconds = rounds * 3 * (SEGMENT_S + MARGIN_S) + START_S
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder, seconds, period) as server:
            segments = list(observed(rounds, server.pid))
            requests = np.array(requests_of(server, folder))
    quiet = [segment for segment in segments if segment.others_s < others / 100]
    by_case = {
        case: [segment for segment in quiet if segment.case == case]
        for case in (BASE, "programs", "capture")
    }
    if not all(by_case.values()):
        raise SystemExit("bench: no second was quiet")
    latencies = {
        case: [_within(segment, requests) for segment in found] for case, found in by_case.items()
    }
    return {
        case: {
            "seconds": len(found),
            "events_per_s": round(statistics.median(each.events for each in found) / SEGMENT_S),
            "recorder_cpu": f"{statistics.median(each.own_s for each in found) / SEGMENT_S:.2%}",
            **_figures(latencies[case], latencies[BASE]),
        }
        for case, found in by_case.items()
    }


def _within(segment: Segment, requests: np.ndarray) -> np.ndarray:
    """Return the latencies of the requests of a second, in ns."""
    margin_ns = int(MARGIN_S * 1e9)
    ends = (segment.began_ns + margin_ns, segment.ended_ns - margin_ns)
    first, last = np.searchsorted(requests[:, 0], ends)
    return requests[first:last, 1]


def _figures(found: Sequence[np.ndarray], base: Sequence[np.ndarray]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    chance = random.Random(SEED)  # noqa: S311 - a bootstrap
    for name, share in SHARES.items():
        values, bases = _quantiles(found, share), _quantiles(base, share)
        changes = sorted(
            _resampled(values, chance) / _resampled(bases, chance) - 1 for _ in range(RESAMPLES)
        )
        low, high = changes[RESAMPLES // 40], changes[-RESAMPLES // 40]
        figures[f"{name}_us"] = round(statistics.median(values) / 1000, 1)
        figures[f"{name}_change"] = (
            f"{statistics.median(values) / statistics.median(bases) - 1:+.1%}"
        )
        figures[f"{name}_interval"] = f"{low:+.1%} to {high:+.1%}"
    return figures


def _quantiles(latencies: Sequence[np.ndarray], share: float) -> list[float]:
    return [float(np.quantile(each, share)) for each in latencies]


def _resampled(values: Sequence[float], chance: random.Random) -> float:
    return statistics.median(chance.choices(values, k=len(values)))


if __name__ == "__main__":
    sys.exit(report(__doc__, measure, rounds=150, period=500, others=10))
