"""Runs in the guest as root: ``python tests/kernel/profiles --engine PATH --mysql PATH ...``.

A real MySQL under sysbench and a real PyTorch training are given what their profiles ask for. The
engine's own record tells where their threads are, the kernel's trace who ran where.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples/demo"))

import agent as demo_agent
import files
import kernel
from judging import judge_database, judge_fence, judge_siblings, judge_training
from outcomes import Report
from profiled import Node
from programs import Installed


def walk(node: Node, report: Report) -> None:
    """Begin, train, serve; and change profiles while queries are answered."""
    seen = node.begin()
    steered = seen["steering"]["mode"]
    report.claim("enforcing", steered == "hints", f"{seen['engine']}, {steered}")
    seen = {each["pod"]: each["profile"] for each in node.observe()["pods"]}
    chosen = (seen.get("db"), seen.get("train")) == ("mysql-innodb", "pytorch-training")
    report.claim("chosen", chosen, str(seen))
    node.train()
    report.tell("the training has made a step")
    judge_training(node, report)
    node.pods["train"].pause()
    node.serve()
    report.tell("the database answers")
    judge_database(node, report)
    judge_fence(node, report)
    judge_siblings(node, report)
    files.drop_bad_ones(node, report)
    files.edit(node, report)
    once = kernel.state() == "enabled" and kernel.attaches() == 1
    report.claim("attached", once, f"{kernel.state()}, {kernel.attaches()} attach")


def main() -> None:
    """Walk; exit with 1 where something was not as claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--mysql", type=Path, required=True, help="the server's folder")
    parser.add_argument("--tables", type=Path, required=True, help="its data, to be copied")
    parser.add_argument("--python", type=Path, required=True, help="one that has PyTorch")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    report = Report(options.report)
    node = Node(options.engine, Installed(options.mysql, options.tables, options.python))
    try:
        walk(node, report)
    except kernel.NotInTime as missed:
        report.claim("in_time", False, str(missed))
    finally:
        node.end()
    if report.failed:
        sys.stdout.write(demo_agent.last_words() + "\n")
    sys.exit(1 if report.failed else 0)


main()
