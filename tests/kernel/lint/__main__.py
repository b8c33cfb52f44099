"""Runs in the guest as root: ``python tests/kernel/lint --engine PATH [--only SCENE ...]``.

First a healthy mixed load, for *seconds*: nothing may stand, not once. Then one thing after the
other goes wrong, for real: each has to be told, and to be gone once it is put right.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples/demo"))

import agent as demo_agent
import kernel
from linted import PERIOD_S, Node, told_so_far
from scenes import SCENES, Scene, undo

HEALTHY, EXPLAINED = "healthy", "explained"
PLAYED = (HEALTHY, *SCENES, EXPLAINED)
SETTLED_S = 20.0
"""New threads, and an engine that sizes its layers for them, are given that long."""
TELL_S = 60.0
"""So often the long part tells how it goes."""


class Report:
    """Says what held, to people and to the test."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._began = time.monotonic()
        self.failed = 0

    def say(self, word: str, said: str) -> None:
        """Say how far it has come, by the guest's clock."""
        sys.stdout.write(f"[{time.monotonic() - self._began:6.1f} s] {word} {said}\n")
        sys.stdout.flush()

    def claim(self, name: str, holds: bool, measured: str) -> None:
        """Say whether a claim holds, and by what it was judged."""
        self.failed += not holds
        self.say("ok    " if holds else "FAILED", f"{name}: {measured}")
        if self._path is not None:
            line = {"claim": name, "holds": holds, "measured": measured}
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")


def be_healthy(node: Node, report: Report, seconds: float) -> None:
    """Work as usual for a while; claim that nothing ever stood."""
    time.sleep(SETTLED_S)
    before, began, windows = len(told_so_far()), time.monotonic(), set[str]()
    told: list[str] = []
    while (passed := time.monotonic() - began) < seconds:
        pause_s = min(TELL_S, seconds - passed)
        windows |= _windows_in(node, pause_s)
        told = told_so_far()[before:]
        report.say("so far", f"{len(windows)} windows, {len(told)} violations")
    measured = f"{len(windows)} windows in {seconds:.0f} s, {len(told)} violations"
    # A second may have no window of its own, but more than every other has.
    are_many = len(windows) > seconds / PERIOD_S / 2
    report.claim(HEALTHY, not told and are_many, "; ".join([measured, *told[:3]]))


def _windows_in(node: Node, seconds: float) -> set[str]:
    """Return when those looks were of which the agent tells in the next *seconds*."""
    until, windows = time.monotonic() + seconds, set()
    while time.monotonic() < until:
        windows.add(node.agent.ask("/violations").get("at"))
        time.sleep(PERIOD_S)
    return windows - {None}


def play(node: Node, report: Report, name: str, scene: Scene) -> str:
    """Let something be wrong, and claim that it is told; return what of it stays afterwards."""
    wanted = scene(node)
    try:
        took = node.wait_for(wanted)
        told = [
            each for each in node.violations() if (each["invariant"], each["subject"]) in wanted
        ]
        report.claim(name, True, f"after {took:.1f} s: " + "; ".join(_said(each) for each in told))
    except kernel.NotInTime as missed:
        report.claim(name, False, f"{sorted(wanted)} not told: {missed}\n{node.picture()}")
    undo(node)
    try:
        node.wait_for_calm()
    except kernel.NotInTime as missed:
        report.say("stays", f"{name}: {missed}")
        return f"{name}: {missed}"
    return ""


def explain(node: Node, report: Report) -> None:
    """Claim that the command line says what stands, and explains one by its id."""
    wanted = SCENES["quota"](node)
    node.wait_for(wanted)
    table = demo_agent.temper("lint", "--settings", str(demo_agent.SETTINGS))
    [standing] = [each for each in node.violations() if each["invariant"] == "quota_unenforced"]
    settings = ["--settings", str(demo_agent.SETTINGS)]
    explained = demo_agent.temper("lint", *settings, "--explain", standing["id"])
    holds = standing["id"] in table and "quota_cores 0.5" in explained
    report.claim(EXPLAINED, holds, explained.partition("\n")[0])
    undo(node)
    node.wait_for_calm()


def _said(violation: dict[str, object]) -> str:
    return f"{violation['id']} {violation['message']}"


def walk(node: Node, report: Report, seconds: float, wanted: Sequence[str]) -> None:
    """Be healthy, then everything but."""
    if HEALTHY in wanted:
        be_healthy(node, report, seconds)
    stayed = [play(node, report, name, SCENES[name]) for name in SCENES if name in wanted]
    if EXPLAINED in wanted:
        explain(node, report)
    lasting = "; ".join(filter(None, stayed))
    standing = node.standing()
    is_calm = not standing and not lasting
    report.claim("calm", is_calm, lasting or f"{len(standing)} stand in the end")
    enabled = kernel.state() == "enabled" and kernel.attaches() == 1
    report.claim("attached", enabled, f"{kernel.state()}, {kernel.attaches()} attach")


def main() -> None:
    """Walk; exit with 1 where something was not as claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--only", nargs="+", choices=PLAYED, default=PLAYED, metavar="SCENE")
    options = parser.parse_args()
    report = Report(options.report)
    node = Node(options.engine)
    try:
        node.begin()
        report.say("it has", f"the engine: {kernel.operations()}")
        walk(node, report, options.seconds, options.only)
    except kernel.NotInTime as missed:
        report.claim("in_time", False, str(missed))
    finally:
        node.end()
    if report.failed:
        sys.stdout.write(demo_agent.last_words() + "\n")
    sys.exit(1 if report.failed else 0)


main()
