"""Runs in the guest as root: ``python tests/kernel/training --engine PATH``.

``temper train run`` refines a profile of a pod with noise of its own: processes, or with ``--pool
PROGRAM`` the threads of one process. While each measurement is taken, the layers of the pod's
threads are read from the engine's own record.
"""

import argparse
import json
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parents[1] / "profiles"))
sys.path.insert(0, str(Path(__file__).parents[1] / "churn"))
sys.path.insert(0, str(Path(__file__).parents[3] / "examples/demo"))

import agent as demo_agent
import kernel
import pod as processes
import pool
from attrs import frozen
from layers import Layers
from outcomes import Report

from temper_core import parse_profile

# As a record that is committed has them: below the checkout, in which the walk starts.
PYTHON, BENCHMARK = ".venv/bin/python", "tests/kernel/training/benchmark.py"
SOCKET = demo_agent.DIRECTORY / "benchmark.sock"
TIER, OPEN = "critical", "open"
ARMS = BASELINE, WHOLE = "the tier alone", "the whole profile"
LEAST_CHANGES = 10
MOST_SHOWN = 3_000
# Without the linter: in a guest of two cores it reports open_reserve of the system layer from time
# to time, also with the tier alone, and a violation ends a trial.
SETTINGS = """
[plugin_host]
allow = ["trainer"]

[scheduler]
engine = "{engine}"
start_deadline_s = 900.0
quiet_s = 1.0
min_interval_s = 1.0

[pods]
source = "local"
units = false

[[workloads]]
name = "{pod}"
cgroup = "{cgroup}"
tier = "critical"
cpu_request = "1"

[server]
listen = "{address}"
"""
LOOK_AFTER_S = 0.25


Pod = processes.Pod | pool.Pod


@frozen
class Shape:
    """What is trained: the name of pod and profile, the first profile, and how the pod starts."""

    name: str
    profile: str
    start: Callable[[], Pod]
    trials: int


@frozen
class Look:
    """What the engine and the kernel said while a measurement was taken."""

    value: float
    noisy: frozenset[str]
    served: frozenset[str]
    noisy_cpus: frozenset[int]
    attaches: int


class Measurements:
    """Answers every benchmark command with a measurement, and looks at the pod meanwhile."""

    def __init__(self, pod: Pod, report: Report) -> None:
        self.pod, self.report = pod, report
        self.layers = Layers(demo_agent.ADDRESS)
        self.looks: list[Look] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(SOCKET))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            client, _ = self._listener.accept()
            with client:
                look = self.taken()
                self.looks.append(look)
                self.report.tell(f"{len(self.looks)}: {look}")
                with suppress(BrokenPipeError):  # a guard ended the benchmark
                    client.sendall(f"{look.value}\n".encode())

    def taken(self) -> Look:
        """Measure once, and look while the noise goes on."""
        self.pod.begin()
        time.sleep(LOOK_AFTER_S)
        self.layers.refresh()
        noisy = frozenset(map(self.layers.of, self.pod.noisy()))
        served = frozenset(map(self.layers.of, self.pod.served()))
        cpus = frozenset(map(kernel.last_cpu, self.pod.noisy()))
        attaches = kernel.attaches()
        return Look(self.pod.result(), noisy, served, cpus, attaches)


@frozen
class Judged:
    """The end of the command beside what the walk saw."""

    done: "subprocess.CompletedProcess[str]"
    record: Path
    looks: list[Look]

    @property
    def journal(self) -> list[dict[str, Any]]:
        """The measurements of the journal, in order."""
        lines = (self.record / "journal.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines[1:]]

    def pairs(self) -> list[tuple[str, Look]]:
        """Return what each measurement of the journal is of, and the look at that time."""
        rows = self.journal
        values = [
            (row.get("value", 0.0), look.value) for row, look in zip(rows, self.looks, strict=False)
        ]
        if len(rows) != len(self.looks) or not all(math.isclose(*pair) for pair in values):
            return []
        return [(row["change"], look) for row, look in zip(rows, self.looks, strict=True)]

    def of(self, change: str) -> list[Look]:
        """Return the looks at an arm."""
        return [look for each, look in self.pairs() if each == change]


def train(artifacts: Path, shape: Shape) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end."""
    profile = demo_agent.DIRECTORY / "first.toml"
    profile.write_text(shape.profile)
    options = {
        "--pod": shape.name,
        "--profile": profile,
        "--benchmark": f"{PYTHON} -I -S {BENCHMARK} {SOCKET}",
        "--metric": "round",
        "--artifacts": artifacts,
        "--trials": shape.trials,
        "--blocks": 8,
        "--warm-up": 0,
        "--settings": demo_agent.SETTINGS,
    }
    words = [str(word) for pair in options.items() for word in pair]
    return subprocess.run(
        [demo_agent.TEMPER, "train", "run", *words], capture_output=True, text=True, check=False
    )


def judge(report: Report, judged: Judged) -> None:
    """Claim what the journal says of the arms, and what the engine said meanwhile."""
    pairs = judged.pairs()
    report.claim("journal", bool(pairs), f"{len(judged.journal)} rows, {len(judged.looks)} looks")
    changes = sum(one[0] != other[0] for one, other in pairwise(pairs))
    report.claim("switched", changes >= LEAST_CHANGES, f"{changes} changes of the arm")
    for name, arm, layer in (("baseline", BASELINE, TIER), ("profile", WHOLE, OPEN)):
        looks = judged.of(arm)
        seen = {layer for look in looks for layer in look.noisy}
        served = {layer for look in looks for layer in look.served}
        holds = seen == {layer} and served == {TIER}
        report.claim(name, holds, f"{len(looks)} looks: noise in {seen}, the served in {served}")
    cpus = [frozenset().union(*(look.noisy_cpus for look in judged.of(arm))) for arm in ARMS]
    report.claim("cpus", all(cpus) and not cpus[0] & cpus[1], f"noise on the CPUs {cpus}")
    attaches = {look.attaches for look in judged.looks}
    report.claim("one_engine", len(attaches) == 1, f"attaches since boot: {attaches}")
    report.claim("verdict", *verdict_of(judged))


def verdict_of(judged: Judged) -> tuple[bool, str]:
    """Return whether the run ended with a better profile and its evidence, and what it said."""
    said = judged.done.stdout.strip()
    trained = judged.record / "profile.toml"
    if judged.done.returncode or not trained.exists():
        return False, said
    shown = (judged.record / "REPORT.md").read_text()
    is_better = "**Verdict: the profile is better than the tier alone" in shown
    return is_better and parse_profile(trained.read_text(), "it").evidence.effect == "better", said


def judge_end(report: Report, agent: demo_agent.Agent, before: Look, after: Look) -> None:
    """Claim that nothing of the run is in force."""
    trials = agent.ask("/trials")["trials"]
    requests = agent.ask("/safe-mode")["requests"]
    profiles = [pod.get("profile") for pod in agent.ask("/observe?top=1")["pods"]]
    measured = f"{trials=}, {requests=}, {profiles=}, noise in {set(after.noisy)}"
    is_left = trials or requests or any(profiles)
    report.claim("nothing_left", not is_left and after.noisy == before.noisy, measured)


def walk(engine: Path, report: Report, share: Path, shape: Shape) -> None:
    """Train under the engine, and judge."""
    demo_agent.DIRECTORY.mkdir(exist_ok=True)
    given = {"address": demo_agent.ADDRESS, "cgroup": processes.CGROUP.name, "pod": shape.name}
    demo_agent.SETTINGS.write_text(SETTINGS.format(engine=engine, **given))
    pod = shape.start()
    agent = demo_agent.Agent(demo_agent.PATIENT)
    agent.wait_for("enforcing")
    report.tell("the agent enforces")
    measurements = Measurements(pod, report)
    before = measurements.taken()
    done = train(share / "training-artifacts", shape)
    report.tell(done.stdout + done.stderr[-MOST_SHOWN:])
    # The first measurement only tells the command that the benchmark works.
    looks = measurements.looks[1:]
    judge(report, Judged(done, share / "training-artifacts" / shape.name, looks))
    agent.settled()
    judge_end(report, agent, before, measurements.taken())
    pod.end()
    agent.stop()
    report.claim("released", kernel.state() == "disabled", f"sched_ext is {kernel.state()}")


def shape_of(program: Path | None) -> Shape:
    """Return the pool of threads that *program* is, or the pod of processes."""
    if program is None:
        return Shape("served", processes.PROFILE, processes.Pod, trials=1)
    return Shape(pool.NAME, pool.PROFILE, lambda: pool.Pod(program), trials=2)


def main() -> None:
    """Walk. The exit code is 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--pool", type=Path)
    options = parser.parse_args()
    report = Report(options.report)
    share = options.report.parent if options.report else Path.cwd()
    try:
        walk(options.engine, report, share, shape_of(options.pool))
    except kernel.NotInTime as missed:
        report.claim("in_time", False, str(missed))
        report.tell(demo_agent.last_words())
    sys.exit(1 if report.failed else 0)


main()
