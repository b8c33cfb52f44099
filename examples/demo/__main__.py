"""Runs in the guest as root: ``python examples/demo --engine PATH [--walk NAME]``."""

import argparse
import sys
from pathlib import Path

import life
from agent import BRISK, PATIENT
from node import Node
from report import Report
from saturation import saturate
from tracing import trace

LIFE_S = 60.0
SATURATION_S = 30.0


def main() -> None:
    """Run the walk. Exit with 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True, help="the scx_layered to run")
    parser.add_argument("--walk", choices=sorted(WALKS), default="life")
    parser.add_argument("--report", type=Path, help="also write every outcome here, as JSON lines")
    parser.add_argument(
        "--patient",
        action="store_true",
        help="wait longer and look less often, as a busy host needs it",
    )
    options = parser.parse_args()
    report = Report(options.report)
    with Node(report, options.engine, PATIENT if options.patient else BRISK) as node:
        node.attach()
        WALKS[options.walk](node)
        life.stop(node)
    sys.exit(report.exit_code)


def _live(node: Node) -> None:
    node.judge_layers()
    life.raise_priority(node)
    life.grow(node)
    life.go_through_safe_mode(node)
    life.spin(node, LIFE_S)
    life.kill(node)
    life.restart(node)


def _trace(node: Node) -> None:
    node.agent.settled()
    trace(node)


def _saturate(node: Node) -> None:
    saturate(node, SATURATION_S)


WALKS = {"life": _live, "saturation": _saturate, "swap": life.swap, "trace": _trace}

main()
