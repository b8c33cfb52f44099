"""Runs in the guest as root: ``python tests/kernel/churn --engine PATH [--changes N]``.

Pods come, go, and change tier, size and profile, one change after the other. After each, the time
is taken until every thread of the pod is in its layer by the engine's own record.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples/demo"))

import agent as demo_agent
import kernel
from layers import Layers
from members import PROFILE, Pod, cpu_used_s
from workloads import write_podlist

PRIORITIES = (1_000_000, 100_000, 0, -10, -1000)
MILLIS = (50, 100, 250, 500)
MOST_PODS, FEWEST_PODS = 16, 4
FOLLOWED_S = 1.0
GIVEN_UP_S = 60.0
NEWBORN_CPU_S = 0.010
MOST_ENGINE_CHANGES = 5
LOOK_S = 0.01
SEED = 4
PROFILES = demo_agent.DIRECTORY / "profiles"
SETTINGS = """
[scheduler]
engine = "{engine}"
start_deadline_s = 240.0

[pods]
source = "file"
file = "{pods}"
poll_s = 0.25

[profiles]
directory = "{profiles}"

[server]
listen = "{address}"
"""
PROFILE_FILE = f"""
schema_version = 1
id = "{PROFILE}"
[[thread_groups]]
name = "helpers"
match = [{{ comm_prefix = "bg-" }}]
treatment = "yield"
[[thread_groups]]
name = "rest"
treatment = "normal"
"""


class Churn:
    """The pods of the node, and what following their changes took."""

    def __init__(self, engine: Path) -> None:
        self.chance = random.Random(SEED)
        self.pods: list[Pod] = []
        self.numbers = iter(range(1, 100_000))
        self.followed_s: list[float] = []
        self.newborn_cpu_s: list[float] = []
        self.lost: list[str] = []
        self.layers = Layers(demo_agent.ADDRESS)
        self._configure(engine)

    def begin(self) -> None:
        """Start the first pods and the agent, and wait until it enforces."""
        for _ in range(FEWEST_PODS):
            self.add()
        self.write()
        self.agent = demo_agent.Agent()
        self.agent.wait_for("enforcing")
        self.followed_s.clear()
        self.newborn_cpu_s.clear()

    def change(self) -> None:
        """Change one thing, and follow it until every thread is where it belongs."""
        changes: list[Callable[[], Pod | None]] = [self.retier, self.resize, self.profile]
        changes += [self.add] * 2 if len(self.pods) < MOST_PODS else []
        changes += [self.remove] * 2 if len(self.pods) > FEWEST_PODS else []
        change = self.chance.choice(changes)
        pod = change()
        began = time.monotonic()
        self.write()
        if pod is not None:
            self.follow(pod, began, is_new=change == self.add)

    def add(self) -> Pod:
        """Let a pod come."""
        number = next(self.numbers)
        pod = Pod(number, self.chance.choice(PRIORITIES), self.chance.choice(MILLIS))
        pod.profiled = self.chance.random() < 0.3
        pod.start()
        self.pods.append(pod)
        return pod

    def remove(self) -> None:
        """Let a pod go."""
        self.pods.pop(self.chance.randrange(len(self.pods))).end()

    def retier(self) -> Pod:
        """Give a pod another tier."""
        pod = self.chance.choice(self.pods)
        pod.priority = self.chance.choice([p for p in PRIORITIES if p != pod.priority])
        return pod

    def resize(self) -> Pod:
        """Give a pod another size."""
        pod = self.chance.choice(self.pods)
        pod.millis = self.chance.choice([size for size in MILLIS if size != pod.millis])
        return pod

    def profile(self) -> Pod:
        """Give a pod the profile, or take it away."""
        pod = self.chance.choice(self.pods)
        pod.profiled = not pod.profiled
        return pod

    def write(self) -> None:
        """Let the agent's pod source say what the pods are now."""
        write_podlist(demo_agent.PODLIST, self.pods)

    def follow(self, pod: Pod, began: float, *, is_new: bool) -> None:
        """Wait until all threads of *pod* are where they belong; note how long it took."""
        settled: dict[int, float] = {}
        while time.monotonic() - began < GIVEN_UP_S:
            astray = self.astray(pod)
            for tid in pod.threads().keys() - astray.keys() - settled.keys():
                settled[tid] = cpu_used_s(tid)
            if not astray:
                break
            time.sleep(LOOK_S)
        else:
            self.lost.append(f"pod-{pod.number}: {self.astray(pod)}")
        self.followed_s.append(time.monotonic() - began)
        if is_new:
            self.newborn_cpu_s += settled.values()

    def astray(self, pod: Pod) -> dict[int, str]:
        """Return the threads of *pod* that are not where they belong, with where they are."""
        self.layers.refresh()
        found = {}
        for tid, name in pod.threads().items():
            wanted, layer = pod.wanted_layer(name, self.layers.names), self.layers.of(tid)
            if layer != wanted:
                found[tid] = f"{name} in {layer or 'none'}, not {wanted}"
        return found

    def end(self) -> None:
        """End the agent and everybody else."""
        self.agent.stop()
        for pod in self.pods:
            pod.end()

    def _configure(self, engine: Path) -> None:
        PROFILES.mkdir(parents=True, exist_ok=True)
        (PROFILES / "churn.toml").write_text(PROFILE_FILE)
        given = {"pods": demo_agent.PODLIST, "address": demo_agent.ADDRESS}
        text = SETTINGS.format(engine=engine, profiles=PROFILES, **given)
        demo_agent.SETTINGS.write_text(text)


def judge(churn: Churn, engine_changes: int) -> list[dict[str, object]]:
    """Return every claim, whether it holds, and by what it was judged."""
    followed = sorted(churn.followed_s)
    late = sum(seconds > FOLLOWED_S for seconds in followed)
    newborn = statistics.median(churn.newborn_cpu_s) if churn.newborn_cpu_s else 0.0
    end = {pod.number: churn.astray(pod) for pod in churn.pods}
    strays = {number: found for number, found in end.items() if found}
    p50, p99 = followed[len(followed) // 2], followed[int(len(followed) * 0.99)]
    told = f"p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms, max {followed[-1] * 1e3:.0f} ms"
    return [
        _claim("budget", engine_changes <= MOST_ENGINE_CHANGES, f"{engine_changes} engine changes"),
        _claim(
            "followed", not churn.lost, "; ".join(churn.lost[:3]) or "every change was followed"
        ),
        _claim(
            "in_time", late == 0, f"{told}; {late} of {len(followed)} later than {FOLLOWED_S} s"
        ),
        _claim("newborn", newborn < NEWBORN_CPU_S, f"median {newborn * 1e3:.2f} ms of CPU"),
        _claim("settled", not strays, f"{strays}" if strays else f"{len(end)} pods, none astray"),
    ]


def _claim(name: str, holds: bool, measured: str) -> dict[str, object]:
    sys.stdout.write(f"  {'ok    ' if holds else 'FAILED'} {name}: {measured}\n")
    return {"claim": name, "holds": holds, "measured": measured}


def main() -> None:
    """Churn; exit with 1 where something was not as claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    churn = Churn(options.engine)
    churn.begin()
    attaches = kernel.attaches()
    for number in range(options.changes):
        churn.change()
        if number % 50 == 49:
            sys.stdout.write(f"{number + 1} changes, {kernel.attaches() - attaches} engines\n")
            sys.stdout.flush()
    time.sleep(2 * FOLLOWED_S)
    claims = judge(churn, kernel.attaches() - attaches)
    churn.end()
    if options.report:
        options.report.write_text("".join(json.dumps(claim) + "\n" for claim in claims))
    if not all(claim["holds"] for claim in claims):
        sys.stdout.write(demo_agent.last_words() + "\n")
        sys.exit(1)


main()
