"""What the BPF programs of a capture cost each event, without the helper process.

    python bench/trace_programs.py [--rounds N] [--trips N] [--json]

It needs root, BPF and the cgroup v2 hierarchy. Two processes on one CPU pass a byte to and fro, in
short rounds: without programs, and with those of a capture of the whole node, of the pair's cgroup
and of another process, in turn. Other jobs of the machine only make a round longer, so the least of
all rounds counts. A cost is per switch or wake-up of the two processes.
"""

import os
import sys
from pathlib import Path
from typing import Any

from bpf_programs import report
from wakes import ns_per_trip, pong

from temper_core.node.cgroups import detect_cgroups
from temper_plugin_tracer.capture.bpf_recorder import BpfRecorder
from temper_plugin_tracer.capture.selection import CgroupChoice, Selection

SHORT_ROUNDS = 20
"""In a row of one case. Attaching the programs takes longer than a short round."""


def own_cgroup() -> CgroupChoice:
    """Return the cgroup v2 of this process. Raises OSError where there is none."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    path = next(line for line in lines if line.startswith("0::/"))[4:]
    root = detect_cgroups().unified
    directory = Path(root, path)
    return CgroupChoice(directory.stat().st_ino, len(Path(path).parts))


def least(playing: Any) -> float:  # noqa: ANN401 - the process of bench/wakes.py
    """Return the ns of the shortest of some rounds."""
    return min(ns_per_trip(playing) for _ in range(SHORT_ROUNDS))


def measure(rounds: int, trips: int) -> dict[str, Any]:
    """Measure all captures."""
    selections = {
        "node": Selection(),
        "cgroup": Selection("cgroup", cgroups=(own_cgroup(),)),
        "process": Selection("process", processes=(os.getpid(),)),
    }
    figures: dict[str, Any] = {}
    with pong(trips) as playing:
        ns_per_trip(playing)
        for name, selection in selections.items():
            with BpfRecorder.open(selection) as recorder:
                figures[name] = _compared(recorder, playing, rounds)
    return figures


def _compared(recorder: BpfRecorder, playing: Any, rounds: int) -> dict[str, float]:  # noqa: ANN401
    without, attached = [], []
    for _ in range(rounds):
        without.append(least(playing))
        recorder.begin()
        attached.append(least(playing))
        recorder.end()
        recorder.drain()
    added = min(attached) - min(without)
    return {
        "without_ns": round(min(without)),
        "attached_ns": round(min(attached)),
        "per_event_ns": round(added / EVENTS),
    }


EVENTS = 4
"""Of a round trip: two wake-ups and two switches."""

if __name__ == "__main__":
    sys.exit(report(__doc__, measure, rounds=15, trips=300))
