"""The node of the walk: starts and ends its pods and its agent."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import kernel
from agent import BRISK, PODLIST, Agent, Pace, last_words, write_settings
from observations import Json, layer_of, leftovers, planned_sizes, size_faults
from report import Report
from workloads import Crowd, Pod, write_podlist

CPU_SAMPLES = 40
FENCED = ("payments", "api")


class Node:
    """One agent and its pods, one of each tier. All are ended on exit."""

    def __init__(
        self, report: Report, engine: Path, pace: Pace = BRISK, under: Sequence[str] = ()
    ) -> None:
        self.report = report
        self._pace, self._under = pace, under
        self.crowd = Crowd(
            [
                Pod("payments", 1_000_000, "2"),
                Pod("api", 100_000, "1"),
                Pod("web", 0, "500m"),
                Pod("reports", -10, "100m"),
                Pod("backup", -1000),
            ]
        )
        self.pods = self.crowd.pods
        write_settings(engine, pace)
        self.list_pods()
        self.before = set(leftovers())

    def __enter__(self) -> Self:
        self.report.step("Five pods, one of each tier, and a process of the system's own")
        for pod in self.pods.values():
            size = pod.cpu or "none"
            self.report.tell(f"{pod.name:9} priority {pod.priority:8} request {size}")
        return self

    def __exit__(self, _kind: object, problem: object, _trace: object) -> bool:
        """End all processes. A timeout is reported and not raised."""
        is_ours = isinstance(problem, kernel.NotInTime)
        if is_ours:
            self.report.give_up(f"{problem}; the agents' log ends with\n{last_words()}")
        self.crowd.end()
        return is_ours

    def list_pods(self) -> None:
        """Write the current pods to the agent's pod source."""
        write_podlist(PODLIST, self.pods.values())

    def start_agent(self) -> Json:
        """Start an agent. Return the first observation in which it enforces."""
        self.agent = Agent(self._pace, self._under)
        observation: Json = self.agent.wait_for("enforcing")
        return observation

    def attach(self) -> None:
        """Start the first agent, and check that the kernel runs its plan."""
        report, attaches = self.report, kernel.attaches()
        report.step("The agent starts: it plans, checks, and attaches the engine (half a minute)")
        began = time.monotonic()
        observation = self.start_agent()
        self.cold_s = time.monotonic() - began
        attached, state, operations = (
            kernel.attaches() - attaches,
            kernel.state(),
            kernel.operations(),
        )
        report.claim(
            "attached",
            attached == 1 and state == "enabled" and operations.startswith("layered"),
            f"{state}, {operations}, {attached} attach",
        )
        report.claim(
            "proven",
            bool(observation["engine"]) and observation["generation"] == 1,
            f"{observation['mode']}, {observation['engine']}, "
            f"generation {observation['generation']}",
        )

    def judge_layers(self) -> None:
        """Check that the layers have the CPUs and the threads of the plan."""
        report, observation = self.report, self.agent.settled()
        sizes = planned_sizes(self.agent.ask("/config"))
        self.show_layers(observation)
        faults = size_faults(observation, sizes)
        report.claim("cpus_as_planned", bool(sizes) and not faults, "; ".join(faults) or f"{sizes}")
        layers = {name: layer_of(observation, name) for name in self.pods}
        report.claim(
            "placed",
            all(layers[name]["tasks"] == len(self.pods[name].members) for name in FENCED)
            and all(layers[name]["tasks"] >= len(pod.members) for name, pod in self.pods.items()),
            ", ".join(f"{name} in {layer['name']}" for name, layer in layers.items()),
        )
        fenced, used = set(layers["payments"]["cpus"]), self._cpus_used_by("payments")
        report.claim("confined", used <= fenced, f"ran on {used}, fenced are {fenced}")

    def show_layers(self, observation: Json) -> None:
        """Report the CPUs of the layers and the number of their threads."""
        for layer in observation["layers"]:
            cpus = ",".join(map(str, layer["cpus"])) or "none of its own"
            name, kind, tasks = layer["name"], layer["kind"], layer["tasks"]
            self.report.tell(f"layer {name:10} {kind:9} CPUs {cpus:15} {tasks} tasks")

    def _cpus_used_by(self, name: str) -> set[int]:
        used = set()
        self.crowd.measure()
        for _ in range(CPU_SAMPLES):
            used |= {kernel.last_cpu(sleeper.pid) for sleeper in self.pods[name].members}
            time.sleep(0.05)
        self.crowd.latest()
        return used


def milliseconds(seconds: float) -> str:
    """Format a short time."""
    return f"{seconds * 1000:.0f} ms"


def lateness(late: dict[str, float]) -> str:
    """Format the longest delay of each."""
    shown = (f"{name} {milliseconds(seconds)}" for name, seconds in late.items())
    return f"latest: {', '.join(shown)}"
