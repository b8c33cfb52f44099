"""The cost of one tick of observation, at 100, 1,000 and 5,000 real threads.

    python bench/observe_tick.py [--threads N ...] [--tier T] [--pause S] [--ticks N] [--json]

Each size is measured in a process of its own: the whole ``Observer.tick`` on the real /proc, with
a wait before every tick so that caches are as cold as in an agent. It is CPU time, not wall time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temper_core.observe.observer import Observer
from temper_core.records.engine_matchers import Matcher
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import Mode, Status
from temper_core.records.tiers import LayerKind
from temper_core.settings.models import ObserveSettings, Settings

SIZES = (100, 1_000, 5_000)
THREADS_PER_PROCESS = 100
MAKER = Path(__file__).with_name("thread_maker.py")


@contextmanager
def threads_running(
    count: int, pause_s: float, per_process: int = THREADS_PER_PROCESS
) -> Iterator[None]:
    """Keep *count* threads alive, so many to a process, that wake every *pause_s* seconds."""
    makers: list[subprocess.Popen[str]] = []
    try:
        for begun in range(0, count, per_process):
            size = min(per_process, count - begun)
            command = [sys.executable, "-S", str(MAKER), str(size), str(pause_s)]
            pipe = subprocess.PIPE
            makers.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        for maker in makers:
            if maker.stdout is None or maker.stdout.readline() != "ready\n":
                raise SystemExit("bench: a thread maker did not start (limit on processes?)")
        yield
    finally:
        for maker in makers:
            maker.kill()
            maker.communicate()


def a_plan() -> LayerPlan:
    """Return a plan with matchers, so that the tick places threads too."""
    blocks = tuple((Matcher("CgroupPrefix", f"kubepods.slice/pod{n}/"),) for n in range(20))
    layers = (
        Layer("normal", LayerKind.GROUPED, blocks, cpus_min=1, cpus_max=2),
        Layer("open", LayerKind.OPEN, ((),)),
    )
    return LayerPlan(MachineShape.uniform(os.cpu_count() or 1), layers)


def measure(pause_s: float, ticks: int, wait_s: float, tier: str) -> dict[str, Any]:
    """Run *ticks* ticks on this machine and return their cost."""
    settings = Settings(observe=ObserveSettings(tier=tier))
    plan, status = a_plan(), Status(Mode.ENFORCING)
    observer = Observer(plan.machine, settings, node="bench")
    baseline = observer.tick(plan=plan, status=status)
    looks = []
    for _ in range(ticks):
        time.sleep(wait_s)
        looks.append(observer.tick(plan=plan, status=status))
    last, costs_us = looks[-1], [look.overhead.tick_s * 1e6 for look in looks]
    observer.close()
    usual_us = statistics.median(costs_us)
    return {
        "threads_on_host": last.overhead.threads_seen,
        "tier": last.observing.tier,
        "ran_in_window": len(last.threads) + last.observing.unlisted,
        "told": len(last.threads),
        "pause_s": pause_s,
        "baseline_us": round(baseline.overhead.tick_s * 1e6),
        "tick_us": round(usual_us),
        "best_tick_us": round(min(costs_us)),
        "worst_tick_us": round(max(costs_us)),
        "us_per_thread": round(usual_us / last.overhead.threads_seen, 2),
        "period_s": settings.observe.period_s,
        "core_share_percent": round(usual_us / 1e4 / settings.observe.period_s, 4),
        "rss_mib": round(last.overhead.memory_bytes / 2**20, 1),
        "descriptors": last.overhead.descriptors,
    }


def measure_apart(size: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure one size in a fresh process, so that memory is its own."""
    again = [sys.executable, __file__, "--measure-here", "--pause", str(arguments.pause)]
    again += ["--ticks", str(arguments.ticks), "--wait", str(arguments.wait)]
    again += ["--tier", arguments.tier]
    with threads_running(size, arguments.pause):
        done = subprocess.run(again, check=True, stdout=subprocess.PIPE)
    return {"threads_made": size, **json.loads(done.stdout.splitlines()[-1])}


def main() -> None:
    """Measure every size and print a table, or JSON."""
    parser = argparse.ArgumentParser(description="What one tick of observation costs.")
    parser.add_argument("--threads", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--pause", type=float, default=1.0, help="threads wake so often; 0: never")
    parser.add_argument("--ticks", type=int, default=8)
    parser.add_argument("--wait", type=float, default=1.0, help="seconds before each tick")
    parser.add_argument("--tier", default="auto", help="bpf, bpf-iter or proc; auto: the best")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure-here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure_here:
        print(json.dumps(measure(arguments.pause, arguments.ticks, arguments.wait, arguments.tier)))
        return
    results = [measure_apart(size, arguments) for size in arguments.threads]
    print(json.dumps(results, indent=1) if arguments.json else table(results))


def table(results: list[dict[str, Any]]) -> str:
    """Format the results in columns."""
    lines = [list(results[0]), *([str(value) for value in row.values()] for row in results)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


if __name__ == "__main__":
    main()
