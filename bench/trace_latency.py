"""What a capture does to the latency of a loaded server.

    python bench/trace_latency.py [--rounds N] [--seconds S] [--json]

It needs root, BPF and a C compiler. The ladder's open-loop request server answers requests at
random intervals. In each round it runs three times with the same requests: twice without a capture
and once with one of the whole node, in another order each round. The two without show by how much
runs of this machine differ anyway. Latencies count from the intended arrival of a request. The CPU
time is that of the server's threads for a request, by the kernel. Other work changes it little.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from bpf_programs import report
from trace_capture import LEAD_S, started
from tracers import END_S, temper

LOAD = Path(__file__).parent / "ladder" / "load.c"
PERIOD_US, TURNS = 1000, 400_000
"""A request takes 0.2 ms or more, and one comes each millisecond."""
SHARES = {"p50": 0.5, "p99": 0.99}
CASES = ("without", "without again", "capture")


def compiled(folder: Path) -> Path:
    """Compile the request server into *folder*."""
    program = folder / "load"
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, LOAD, "-lm", "-ldl"], check=True)
    return program


@frozen
class Run:
    """The latencies of all requests in ns, sorted, and the CPU time of one."""

    latencies: list[int]
    cpu_ns: float

    def figure(self, name: str) -> float:
        """Return ``p50``, ``p99`` or ``cpu`` in ns."""
        if name == "cpu":
            return self.cpu_ns
        place = int(len(self.latencies) * SHARES[name])
        return self.latencies[min(place, len(self.latencies) - 1)]


def served(program: Path, seconds: float, seed: int) -> Run:
    """Serve requests for *seconds*."""
    options = {"seconds": seconds, "seed": seed, "period_us": PERIOD_US, "turns": TURNS}
    words = [str(program), "serve", *(f"{key}={value}" for key, value in options.items())]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True
    )
    document = json.loads(done.stdout.splitlines()[-1])
    requests = document["requests"]
    cpu_ns = sum(thread["run_ns"] for thread in document["threads"]) / len(requests)
    return Run(sorted(wait + service for wait, service in requests), cpu_ns)


def captured(program: Path, seconds: float, seed: int) -> Run:
    """Serve requests while a capture records, from before their begin to after their end."""
    with tempfile.TemporaryDirectory() as name:
        tracer, folder = temper(), Path(name)
        with started(tracer, folder) as account:
            time.sleep(LEAD_S)
            run = served(program, seconds, seed)
            tracer.end(folder, account.process)
            account.process.wait(END_S)
            recording = tracer.read(folder)
    if not recording.events:
        raise SystemExit("the capture has no events")
    return run


def measure(rounds: int, seconds: int) -> dict[str, Any]:
    """Measure the three cases, in another order each round."""
    runs: dict[str, list[Run]] = {case: [] for case in CASES}
    with tempfile.TemporaryDirectory() as name:
        program = compiled(Path(name))
        for number in range(rounds):
            for case in (*CASES[number % 3 :], *CASES[: number % 3]):
                serve = captured if case == "capture" else served
                runs[case].append(serve(program, float(seconds), number + 1))
    return {case: _figures(runs[case], runs["without"]) for case in CASES}


def _figures(runs: Sequence[Run], base: Sequence[Run]) -> dict[str, Any]:
    """Return the medians over the rounds, and the change against *base* of the same round."""
    figures: dict[str, Any] = {}
    for name in (*SHARES, "cpu"):
        values = [run.figure(name) for run in runs]
        changes = [
            value / other.figure(name) - 1 for value, other in zip(values, base, strict=True)
        ]
        figures[f"{name}_us"] = round(statistics.median(values) / 1000, 1)
        figures[f"{name}_change"] = round(statistics.median(changes), 4)
        figures[f"{name}_changes"] = [round(change, 3) for change in sorted(changes)]
    return figures


if __name__ == "__main__":
    sys.exit(report(__doc__, measure, rounds=9, seconds=5))
