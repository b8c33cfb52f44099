"""Seconds and memory of ``temper rightsize --prometheus`` for a fleet, and of a plain percentile.

    python -m bench.rightsizing_fleet [--containers N] [--hours N] [--steps S ...] [--runs N]

A real Prometheus (``scripts/fetch-prometheus``) is filled with one sample a minute of the CPU and
memory of each container, of its busiest thread for one in eight, and of its requests and owner.
Beside the report a program asks for the same rates of CPU in pieces as large, and takes numpy's
95th percentile of each container. It keeps all samples, as tools do that merge later.
"""

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.rightsizer.fleet_series import make_blocks, serving

TEMPER = str(Path(sys.executable).with_name("temper"))
STEP_S = 60
REPLICAS = 5
BY_NAMESPACE = 500
WATCHED = 8
"""One in so many containers has a busy thread."""
DAY_S = 86_400
MIB = 1024 * 1024
PLAIN = """
import json, sys, urllib.parse, urllib.request
import numpy
address, end, step_s, steps, at_once = sys.argv[1], *map(int, sys.argv[2:])
query = (
    'max by (namespace, pod, container) (sum without (cpu) '
    '(rate(container_cpu_usage_seconds_total{container!="",container!="POD"}[%ds])))'
) % (2 * step_s)
used = {}
for first in range(0, steps, at_once):
    last = min(first + at_once, steps) - 1
    begin, finish = (end - (steps - 1 - step) * step_s for step in (first, last))
    form = {"query": query, "step": step_s, "start": begin, "end": finish}
    body = urllib.parse.urlencode(form).encode()
    answer = json.load(urllib.request.urlopen(f"{address}/api/v1/query_range", body))
    for series in answer["data"]["result"]:
        part = numpy.array([float(value) for _, value in series["values"]])
        used.setdefault(tuple(sorted(series["metric"].items())), []).append(part)
for key, parts in used.items():
    numpy.percentile(numpy.concatenate(parts), 95)
print(len(used))
"""


def main() -> None:
    """Print the figures of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--containers", type=int, default=10_000)
    parser.add_argument("--hours", type=int, default=6)
    parser.add_argument("--steps", type=int, nargs="+", default=[60, 300], help="seconds")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rightsizing-fleet."))
    try:
        end = int(time.time())
        write_blocks(folder, end, arguments.containers, arguments.hours)
        with serving(folder) as address:
            for step_s in arguments.steps:
                measure(address, end, step_s, arguments)
    finally:
        shutil.rmtree(folder)


def measure(address: str, end: int, step_s: int, arguments: argparse.Namespace) -> None:
    """Run both in turn with a step, and print medians and their ratio."""
    steps = arguments.hours * 3600 // step_s
    ours = [TEMPER, "rightsize", "--prometheus", address, "--hours", str(arguments.hours)]
    ours += ["--step", f"{step_s}s"]
    at_once = max(200_000 // arguments.containers, 1)
    plain = [sys.executable, "-c", PLAIN, address, *map(str, (end, step_s, steps, at_once))]
    commands = {"temper": [*ours, "--output", "csv"], "numpy": plain}
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    for _ in range(arguments.runs):
        for name, command in commands.items():
            figures[name].append(run(command))
    medians = {
        name: [statistics.median(figure) for figure in zip(*runs, strict=True)]
        for name, runs in figures.items()
    }
    print(f"step {step_s} s")
    for name, (wall_s, cpu_s, mib) in medians.items():
        print(f"{name:8} {wall_s:6.1f} s, of which its own CPU {cpu_s:6.1f} s, peak {mib:6.0f} MiB")
    ratios = [own / other for own, other in zip(*medians.values(), strict=True)]
    print("ratios  ", json.dumps([round(ratio, 2) for ratio in ratios]))


def run(command: Sequence[str]) -> tuple[float, float, float]:
    """Run *command*. Return its seconds, its CPU seconds, and its peak of memory in MiB."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise SystemExit(output.read().decode()[-2000:])
    return wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def write_blocks(folder: Path, end: int, containers: int, hours: int) -> None:
    """Fill a Prometheus, and tell what that took."""
    begun = time.monotonic()
    make_blocks(folder, series(end, containers, hours))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"filled in {time.monotonic() - begun:.0f} s, promtool {usage.ru_maxrss // 1024} MiB")


def series(end: int, containers: int, hours: int) -> Iterator[str]:
    """Yield the lines of all series in OpenMetrics."""
    window_s = hours * 3600
    # A report reads the window, and the hours that followed this time of day a day ago.
    day_before = range(end - DAY_S - 3600, end - max(DAY_S - window_s, window_s), STEP_S)
    times = [*day_before, *range(end - window_s - 2 * STEP_S, end + 1, STEP_S)]
    chance = random.Random(7)  # noqa: S311 - made-up figures
    for number in range(containers):
        namespace, workload = f"ns-{number // BY_NAMESPACE}", f"app-{number // REPLICAS}"
        pod = f'namespace="{namespace}",pod="{workload}-7c9f-{number % REPLICAS}"'
        yield from samples(f'{{{pod},container="app"}}', times, number, chance)
        owner = f'owner_kind="ReplicaSet",owner_name="{workload}-7c9f"'
        yield f"kube_pod_owner{{{pod},{owner}}} 1 {end}"
        for kind, resource_name, unit, amount in (
            ("requests", "cpu", "core", 0.5),
            ("requests", "memory", "byte", 128 * MIB),
            ("limits", "memory", "byte", 256 * MIB),
        ):
            labels = f'{pod},container="app",resource="{resource_name}",unit="{unit}"'
            yield f"kube_pod_container_resource_{kind}{{{labels}}} {amount} {end}"
        yield f'kube_pod_container_info{{{pod},container="app"}} 1 {end}'
        if number % REPLICAS == 0:
            labels = f'namespace="{namespace}",replicaset="{workload}-7c9f"'
            owner = f'owner_kind="Deployment",owner_name="{workload}"'
            yield f"kube_replicaset_owner{{{labels},{owner}}} 1 {end}"
    yield "# EOF"


def samples(labels: str, times: Sequence[int], number: int, chance: random.Random) -> Iterator[str]:
    """Yield the samples of one container."""
    level, total = chance.uniform(0.05, 1.5), 0.0
    for at in times:
        used = level * chance.uniform(0.5, 1.5)
        total += used * STEP_S
        yield f"container_cpu_usage_seconds_total{labels} {total:.4f} {at}"
        yield f"container_memory_working_set_bytes{labels} {int(used * 100 * MIB)} {at}"
        if number % WATCHED == 0:
            yield f"temper_container_hottest_thread_cpus{labels} {min(used, 1.0):.4f} {at}"


if __name__ == "__main__":
    main()
