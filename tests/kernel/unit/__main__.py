"""Runs in the guest as root: ``python tests/kernel/unit --engine PATH``.

The agent's life under the unit of a plain host (``tests/systemd_unit.py``), its bounds on memory
and tasks included. Commands of the operator run outside of it, as on a host.
"""

import argparse
import sys
from pathlib import Path

import life
from node import Node
from report import Report

CGROUP = Path("/sys/fs/cgroup/temper.service")
UNDER = (
    sys.executable,
    str(Path(__file__).parents[2] / "systemd_unit.py"),
    "--cgroup",
    str(CGROUP),
)


def main() -> None:
    """Run the walk. Exit with 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True, help="the scx_layered to run")
    parser.add_argument("--report", type=Path, help="also write every outcome here, as JSON lines")
    options = parser.parse_args()
    report = Report(options.report)
    CGROUP.mkdir()  # systemd's, so the agent does not have to remove it
    with Node(report, options.engine, under=UNDER) as node:
        node.attach()
        node.judge_layers()
        life.raise_priority(node)
        life.grow(node)
        life.go_through_safe_mode(node)
        life.kill(node)
        life.restart(node)
        tell_peaks(report)
        life.stop(node)
    sys.exit(report.exit_code)


def tell_peaks(report: Report) -> None:
    """Print the most memory and tasks that the cgroup has had, and how often memory ran out."""
    for name in ("memory.peak", "memory.events", "pids.peak"):
        path = CGROUP / name
        report.tell(f"{name}: {' '.join(path.read_text().split()) if path.exists() else 'unknown'}")


main()
