"""Runs in the guest as root: ``python tests/kernel/agreement --engine PATH [--report FILE]``.

First ``temper engine check --load`` judges plans, then an agent enforces one; and while the engine
schedules, each tier of observation is held against the guest's own files.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import kernel
from agents import DIRECTORY, PODLIST, Agent, NotInTime
from pods import CGROUPS, PODS, write_podlist
from trials import judge_plans, try_beside
from windows import observe

from tests.core.observe.agreement.held import hold
from tests.core.observe.agreement.load import Load
from tests.core.observe.agreement.looks import Looker

ALL, FEW = 256, 16
SHOWN = 12
EXACT = 0.5
STRANGERS = 6
OTHERS = (
    ("sums", "bpf", FEW, 9101),
    ("bpf_iter", "bpf-iter", ALL, 9102),
    ("proc", "proc", ALL, 9103),
)


class Report:
    """Says what held, to people and to the test."""

    def __init__(self, path):
        self._path = path
        self._began = time.monotonic()
        self.failed = 0

    def claim(self, name, holds, measured):
        """Say whether a claim holds, and by what it was judged."""
        self.failed += not holds
        word = "ok    " if holds else "FAILED"
        sys.stdout.write(f"[{time.monotonic() - self._began:6.1f} s] {word} {name}: {measured}\n")
        sys.stdout.flush()
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"claim": name, "holds": holds, "measured": measured}) + "\n")


def compare(name, agent, looker, load, report):
    """Claim that what the agent tells of a window is what the kernel's files say of it."""
    document, window = observe(agent, looker, load.work)
    compared = hold(document, window, STRANGERS)
    wrong = [str(each) for each in compared if not each.holds]
    exact = sum(each.is_exact for each in compared)
    rows = sum(row["tid"] in window.after.threads for row in document["threads"])
    told = f"{len(compared)} numbers, {exact} of them exact, {rows} threads, {len(wrong)} wrong"
    report.claim(
        name,
        not wrong and exact > EXACT * len(compared),
        "; ".join([told, document["observing"]["tier"], *wrong[:SHOWN]]),
    )


def walk(engine, load, report, *, is_on_trial):
    """Judge plans where *is_on_trial*, enforce one, and hold every tier against the files."""
    if is_on_trial:
        judge_plans(engine, report)
    looker = Looker(CGROUPS, {f"shop/{pod.name}": pod.cgroup for pod in PODS})
    agents = {"bpf": Agent(engine, "bpf", ALL, enforce=True)}
    agents["bpf"].wait_for("enforcing")
    if is_on_trial:
        try_beside(engine, report)
    for name, tier, detail_threads, port in OTHERS:
        agents[name] = Agent(engine, tier, detail_threads, port=port)
    for name, *_ in OTHERS:
        agents[name].wait_for("observe_only")
    load.disturb()
    for name, agent in agents.items():
        compare(name, agent, looker, load, report)
    told = f"{kernel.state()}, {kernel.attaches()} attach"
    report.claim("attached", told == "enabled, 1 attach", told)
    for agent in agents.values():
        agent.stop()


def main():
    """Walk; exit with 1 where something was not as claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--only-tiers", action="store_true", help="load no plan on trial")
    options = parser.parse_args()
    report = Report(options.report)
    DIRECTORY.mkdir()
    write_podlist(PODLIST)
    for pod in PODS:
        pod.start()
    load = Load({pod.name: pod.container for pod in PODS})
    try:
        walk(options.engine, load, report, is_on_trial=not options.only_tiers)
    except NotInTime as missed:
        report.claim("in_time", False, str(missed))
    finally:
        load.end()
    sys.exit(1 if report.failed else 0)


main()
