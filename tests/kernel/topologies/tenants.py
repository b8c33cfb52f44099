"""The node: a pod of every tier, one of them with an exclusive group, and what they measure."""

import os
import time
from pathlib import Path

import agent as demo_agent
import kernel
from pods import SPINNING, Manner, Pod
from workloads import SYSTEM_CGROUP, Sleeper, end, write_podlist

from temper_core.records.machine import MachineShape

PROFILES = demo_agent.DIRECTORY / "profiles"
PROFILE_FILE = """
schema_version = 1
id = "vip"
[[thread_groups]]
name = "hot"
match = [{ comm_prefix = "vip-" }]
treatment = "exclusive"
cpu_fraction = 1.0
"""
SETTINGS = """
[scheduler]
engine = "{engine}"
start_deadline_s = 1000.0

[pods]
source = "file"
file = "{pods}"
poll_s = 1.0

[profiles]
directory = "{profiles}"

[observe]
period_s = 1.0
budget_cpu_ratio = 1.0

[server]
listen = "{address}"
"""
SAMPLES, SAMPLE_S = 40, 0.05
DUTY = 0.3


class Node:
    """Six pods whose requests are shares of the machine: three eighths of its CPUs together."""

    def __init__(self, engine: Path, machine: MachineShape) -> None:
        self._machine = machine
        sixteenth = len(machine.cpus) * 1000 // 16
        self.pods = {
            pod.name: pod
            for pod in (
                Pod("db", 1_000_000, f"{2 * sixteenth}m", 1),
                Pod("vip", 1_000_000, "1", 2, profile="vip"),
                Pod("api", 100_000, f"{2 * sixteenth}m", 3),
                Pod("web", 0, f"{sixteenth}m", 4),
                Pod("batch", -10, "100m", 5),
                Pod("cron", -1000, "100m", 6),
            )
        }
        for pod in self.pods.values():
            pod.start()
        demo_agent.DIRECTORY.mkdir(exist_ok=True)
        write_podlist(demo_agent.PODLIST, self.pods.values())
        PROFILES.mkdir(exist_ok=True)
        (PROFILES / "vip.toml").write_text(PROFILE_FILE)
        given = {"pods": demo_agent.PODLIST, "address": demo_agent.ADDRESS, "profiles": PROFILES}
        demo_agent.SETTINGS.write_text(SETTINGS.format(engine=engine, **given))
        self._places = {name: pod.container for name, pod in self.pods.items()}
        self._places["system"] = SYSTEM_CGROUP
        self._sleepers = {name: Sleeper(place, name) for name, place in self._places.items()}

    def bind_to_nodes(self) -> None:
        """Let every pod, and the system, have a thread more on each NUMA node, bound to it."""
        for node in range(self._machine.numa_nodes):
            cpus = [cpu.id for cpu in self._machine.cpus if cpu.node == node]
            for name, place in self._places.items():
                sleeper = Sleeper(place, name)
                os.sched_setaffinity(sleeper.pid, cpus)
                self._sleepers[f"{name} on node {node}"] = sleeper

    def begin(self) -> None:
        """Start the agent, and wait until it enforces."""
        self.agent = demo_agent.Agent(demo_agent.PATIENT)
        self.agent.wait_for("enforcing")

    def end(self) -> None:
        """End the agent and everybody else."""
        for pod in self.pods.values():
            pod.rest()
        end(sleeper.pid for sleeper in self._sleepers.values())
        self.agent.stop()

    def work_as_usual(self) -> None:
        """Let every pod use a little, and the exclusive group a whole CPU."""
        for name, pod in self.pods.items():
            pod.work(f"{name}-1", SPINNING if name == "vip" else Manner(DUTY))

    def saturate(self) -> None:
        """Let every pod want every CPU of the machine."""
        for name, pod in self.pods.items():
            for number in range(1 if name == "vip" else len(self._machine.cpus)):
                pod.work(f"{name}-{number + 2}", SPINNING)

    def layers(self) -> dict[str, list[int]]:
        """Return the CPUs that each layer owns now."""
        seen = self.agent.ask("/observe?top=1")
        return {each["name"]: each["cpus"] for each in seen.get("layers", ())}

    def cpus_used(self, name: str) -> tuple[set[int], set[int]]:
        """Return the CPUs that the workers of a pod, and those of all others, were seen on."""
        inside: set[int] = set()
        others: set[int] = set()
        for _ in range(SAMPLES):
            for each, pod in self.pods.items():
                (inside if each == name else others).update(map(kernel.last_cpu, pod.workers))
            time.sleep(SAMPLE_S)
        return inside, others

    def violations(self) -> dict[str, str]:
        """Return what stands now, by its id."""
        found = self.agent.ask("/violations").get("violations", [])
        return {each["id"]: f"{each['invariant']} {each['message']}" for each in found}

    def measure(self) -> None:
        """Begin a measurement of how late everybody wakes."""
        for sleeper in self._sleepers.values():
            sleeper.measure()

    def latest(self) -> dict[str, float]:
        """End the measurement. Return the longest delay of each in seconds."""
        late = {name: sleeper.latest_s for name, sleeper in self._sleepers.items()}
        for sleeper in self._sleepers.values():
            sleeper.doze()
        return late


def milliseconds(seconds: float) -> str:
    """Format a short time."""
    return f"{seconds * 1000:.0f} ms"
