"""Runs in the guest as root: ``python tests/kernel/topologies --engine PATH --nodes N --caches N``.

The agent plans for a machine of several NUMA nodes and last-level caches, and the engine takes the
plan. What the machine is said to be, and where the engine puts the layers, is held against how the
guest was made.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "profiles"))
sys.path.insert(0, str(Path(__file__).parents[1] / "lint"))
sys.path.insert(0, str(Path(__file__).parents[3] / "examples/demo"))

import agent as demo_agent
import kernel
from observations import Json, planned_sizes, size_faults
from outcomes import Report
from spread import Spread
from tenants import Node, milliseconds

from temper_core.node.topology import read_machine
from temper_core.records.machine import MachineShape

THREADS = 2
HEALTHY_S = 5.0
LOOK_S = 2.0
SATURATED_S = 12.0
SERVED_S = 0.1
WAITED_S = 1.0
FENCE = "vip.hot.critical"


def judge_machine(report: Report, made: MachineShape) -> None:
    """Claim that the shape is read as the guest was made, and that the node may enforce."""
    read = read_machine()
    told = f"{read.sockets} sockets, {read.numa_nodes} nodes, {read.llcs} caches"
    report.claim("shape", read == made, f"{told}, {read.cores} cores, {len(read.cpus)} CPUs")
    settings = ("--settings", str(demo_agent.SETTINGS))
    doctor = subprocess.run(
        [demo_agent.TEMPER, "doctor", *settings], capture_output=True, text=True, check=False
    )
    report.claim("doctor", doctor.returncode == 0, f"exit code {doctor.returncode}")


def judge_layers(report: Report, name: str, node: Node, spread: Spread) -> None:
    """Claim that the layers own the whole cores of the plan, none twice, and are close together."""
    seen = node.agent.settled()
    sizes = planned_sizes(node.agent.ask("/config"))
    faults = size_faults(seen, sizes)
    for layer in seen["layers"]:
        report.tell(f"layer {layer['name']:17} {layer['kind']:9} {spread.of(layer['cpus'])}")
    report.claim(name, bool(sizes) and not faults, "; ".join(faults) or f"{sizes}")
    far = list(_far(seen, spread))
    report.claim(f"{name}_near", not far, "; ".join(far) or "no layer is torn without need")


def _far(seen: Json, spread: Spread) -> Iterator[str]:
    for layer in seen["layers"]:
        if spread.is_torn(layer["cpus"]):
            yield f"{layer['name']}: {spread.of(layer['cpus'])}"


def judge_fence(report: Report, node: Node) -> None:
    """Claim that the exclusive group has its core alone."""
    fence = set(node.layers()[FENCE])
    inside, others = node.cpus_used("vip")
    alone = bool(inside) and inside <= fence and not others & fence
    told = f"owns {sorted(fence)}, ran on {sorted(inside)}, others on {sorted(others)}"
    report.claim("alone", alone, told)


def judge_health(report: Report, node: Node) -> None:
    """Claim that the linter has nothing to tell of a healthy node."""
    node.work_as_usual()
    node.agent.settled()
    seen: Mapping[str, str] = {}
    until = time.monotonic() + HEALTHY_S
    while time.monotonic() < until:
        seen = {**seen, **node.violations()}
        time.sleep(1)
    report.claim("healthy", not seen, "; ".join(seen.values()) or "nothing stood")


def judge_saturated(report: Report, name: str, node: Node, spread: Spread) -> None:
    """Claim that everybody is served in time, and that no layer outgrows the plan meanwhile."""
    node.measure()
    for _ in range(int(SATURATED_S / LOOK_S)):
        time.sleep(LOOK_S)
        report.tell(", ".join(f"{each}: {cpus}" for each, cpus in node.layers().items()))
    late = node.latest()
    judge_layers(report, name, node, spread)
    told = ", ".join(f"{each} {milliseconds(seconds)}" for each, seconds in late.items())
    report.claim(f"{name}_system_served", late["system"] < SERVED_S, told)
    report.claim(f"{name}_served", max(late.values()) < WAITED_S, told)
    attached = kernel.state() == "enabled" and kernel.attaches() == 1
    report.claim(f"{name}_attached", attached, f"{kernel.state()}, {kernel.attaches()} attach")


def walk(node: Node, report: Report, made: MachineShape, *, is_bound: bool) -> None:
    """Judge the machine, the plan, a healthy node and a saturated one."""
    spread = Spread(made)
    judge_machine(report, made)
    node.begin()
    report.tell(f"the engine: {kernel.operations()}")
    judge_layers(report, "planned", node, spread)
    judge_health(report, node)
    judge_fence(report, node)
    node.saturate()
    time.sleep(SATURATED_S / 2)
    judge_saturated(report, "saturated", node, spread)
    if is_bound:
        node.bind_to_nodes()
        judge_saturated(report, "bound", node, spread)


def main() -> None:
    """Walk. The exit code is 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--caches", type=int, required=True)
    parser.add_argument("--bound", action="store_true", help="also with threads bound to nodes")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    report = Report(options.report)
    made = MachineShape.uniform(
        (os.cpu_count() or 1) // THREADS,
        THREADS,
        sockets=options.nodes,
        numa_nodes=options.nodes,
        llcs=options.nodes * options.caches,
    )
    node = Node(options.engine, made)
    try:
        walk(node, report, made, is_bound=options.bound)
    except kernel.NotInTime as missed:
        report.claim("in_time", False, str(missed))
    finally:
        node.end()
    if report.failed:
        sys.stdout.write(demo_agent.last_words() + "\n")
    sys.exit(1 if report.failed else 0)


main()
