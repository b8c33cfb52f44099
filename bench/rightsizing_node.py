"""What the rightsizer costs a node: memory of its collector, size and time of its history.

    python -m bench.rightsizing_node [--pods N] [--days N] [--hours N]

The collector gets made-up snapshots, one each 10 s, with as many busy threads as a snapshot may
show. Its memory is what Python allocates (tracemalloc), at the end and at the peak. The history
gets the intervals of all pods on a simulated clock, as an agent would write them, and is merged
each hour. All uses are random, so a histogram has many more buckets than that of a real program.
"""

import argparse
import random
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import evolve

from temper_core import Assignment, Container, LayerPlan, Pod, Tier
from temper_core.records.snapshots import PodSample, Snapshot
from temper_core.testing import MadeContext, make_machine, make_pod, make_snapshot, make_thread
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.waits import WindowWaits
from temper_plugin_rightsizer.demand.window import ContainerKey, window_of
from temper_plugin_rightsizer.node.cgroup_counters import CgroupFiles
from temper_plugin_rightsizer.node.collector import INTERVAL_S, Collector
from temper_plugin_rightsizer.options import Options
from temper_plugin_rightsizer.store.history import DAY_S, FILE, HOUR_S, History
from temper_plugin_rightsizer.store.keeper import Keeper

NOW = 1_800_000_000 // DAY_S * DAY_S
WINDOW_S = 10
THREADS = 6
MOST_SHOWN = 256
"""Threads of a snapshot."""
MIB = 1024 * 1024
LIMIT_BYTES = Options().history_mib * MIB
KINDS = 500
"""Different intervals that are written in turn."""


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=250)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--hours", type=float, default=1.0, help="of snapshots for the collector")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure_collector(Path(folder), given.pods, given.hours)
    with tempfile.TemporaryDirectory() as folder:
        measure_history(Path(folder), given.pods, given.days)


def measure_collector(folder: Path, pods: int, hours: float) -> None:
    """Print the memory and the time of a collector."""
    root = folder / "cgroup"
    known = [
        make_pod(
            f"web-{number}",
            "shop",
            cgroups=(f"kubepods/pod{number}/",),
            containers=(Container("app", runtime_id=f"{number:064x}"),),
        )
        for number in range(pods)
    ]
    for pod in known:
        write_counters(root / pod.cgroups[0])
    assigned = tuple(Assignment(pod, Tier.NORMAL, "priority") for pod in known)
    lookup = MadeContext(plan=LayerPlan(make_machine(), (), assignments=assigned)).lookup
    tracemalloc.start()
    history = History(lambda: folder, LIMIT_BYTES, clock=lambda: float(NOW))
    collector = Collector(Keeper(history), lookup, CgroupFiles(root))
    numbers = random.Random(1)  # noqa: S311 - the same numbers in each run
    spent = 0.0
    windows = int(hours * HOUR_S / WINDOW_S)
    before, peak = tracemalloc.get_traced_memory()[0], 0
    for window in range(windows):
        snapshot = snapshot_of(known, window, numbers)
        idle = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        began = time.process_time()
        collector.tell(snapshot)
        spent += time.process_time() - began
        peak = max(peak, tracemalloc.get_traced_memory()[1] - idle)
        del snapshot
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    print(
        f"collector of {pods} pods: {held / MIB:.1f} MiB held, {peak / MIB:.1f} MiB more within a "
        f"window, {spent / windows * 1e3:.1f} ms of CPU a window under tracemalloc"
    )


def write_counters(cgroup: Path) -> None:
    """Write the files that a collector reads."""
    cgroup.mkdir(parents=True)
    (cgroup / "cpu.stat").write_text("nr_periods 100\nnr_throttled 1\nthrottled_usec 100\n")
    (cgroup / "memory.current").write_text("300000000\n")
    (cgroup / "memory.stat").write_text("anon 1\ninactive_file 1000000\n")
    (cgroup / "memory.events").write_text("high 0\nmax 0\noom 0\noom_kill 0\n")


def snapshot_of(pods: Sequence[Pod], window: int, numbers: random.Random) -> Snapshot:
    """Return a snapshot in which each pod has some busy threads, as many as one may show."""
    threads = [
        make_thread(
            f"worker-{number}",
            namespace="shop",
            pod=pod.name,
            container="app",
            cpu_used=numbers.random(),
        )
        for pod in pods[: MOST_SHOWN // THREADS]
        for number in range(THREADS)
    ]
    samples = tuple(
        PodSample("shop", pod.name, pod.uid, Tier.NORMAL, THREADS, numbers.random()) for pod in pods
    )
    return make_snapshot(
        *threads,
        pods=samples,
        window_s=float(WINDOW_S),
        at=float(NOW + window * WINDOW_S),
        monotonic_s=1000.0 + window * WINDOW_S,
    )


def measure_history(folder: Path, pods: int, days: int) -> None:
    """Print the largest size of the file, and the time that writing and reading take."""
    now = [float(NOW)]
    history = History(lambda: folder, LIMIT_BYTES, clock=lambda: now[0])
    keys = [ContainerKey(f"uid-{n}", "shop", f"web-{n}", "app") for n in range(pods)]
    kinds = list(intervals())
    numbers = random.Random(2)  # noqa: S311 - as above
    added = longest = 0.0
    largest = 0
    for at in range(NOW, NOW + days * DAY_S, INTERVAL_S):
        now[0] = float(at + INTERVAL_S)
        demands = dict(zip(keys, numbers.choices(kinds, k=pods), strict=True))
        began = time.process_time()
        history.add(at, INTERVAL_S, demands)
        added += time.process_time() - began
        if at % HOUR_S == 0:
            began = time.process_time()
            history.compact()
            longest = max(longest, time.process_time() - began)
            largest = max(largest, (folder / FILE).stat().st_size)
    print(
        f"history of {pods} pods over {days} days: {largest / MIB:.1f} MiB at most of "
        f"{LIMIT_BYTES / MIB:.0f}; CPU of an interval {added / days / 288 * 1e3:.1f} ms, of the "
        f"longest merge {longest:.2f} s"
    )
    for hours in (6, 24, days * 24):
        began = time.process_time()
        known = history.read(int(now[0]) - hours * HOUR_S)
        spent = time.process_time() - began
        learned = min((each.cpu.seconds for each in known.values()), default=0) / HOUR_S
        print(f"a report by {hours} h reads {learned:.1f} h of {len(known)} pods in {spent:.2f} s")


def intervals() -> Iterator[IntervalDemand]:
    """Yield different intervals of 5 minutes."""
    numbers = random.Random(3)  # noqa: S311 - as above
    for _ in range(KINDS):
        demand = IntervalDemand()
        for _ in range(INTERVAL_S // WINDOW_S):
            uses = [("worker-1", numbers.random()) for _ in range(THREADS)]
            total = sum(used for _, used in uses)
            waits = WindowWaits(tuple(used for _, used in uses), {"worker-#": (total, total)})
            demand.add(evolve(window_of(total, uses), waits=waits), WINDOW_S)
        size = numbers.randrange(100 * MIB, 900 * MIB)
        for _ in range(5):
            demand.memory.add(size * numbers.uniform(0.9, 1.1), 60)
        demand.counts.peak_bytes = demand.counts.least_bytes = size
        yield demand


if __name__ == "__main__":
    main()
