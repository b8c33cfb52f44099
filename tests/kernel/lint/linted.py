"""The node that is linted: its pods, its agent, and what stands against it."""

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import agent as demo_agent
from kernel import NotInTime
from pods import Manner, Pod
from workloads import write_podlist

Json = dict[str, Any]

PROFILES = demo_agent.DIRECTORY / "profiles"
LOOK_S = 0.25
PERIOD_S = 1.0
# Well below the 30 s after which the kernel ejects an engine for what some scenes do.
STANDS_S = 20.0
CLEARS_S = 60.0
TOLD = "violation_stands"
SETTINGS = """
[scheduler]
engine = "{engine}"
start_deadline_s = 240.0

[plan]
headroom_cores = 0

[pods]
source = "file"
file = "{pods}"
poll_s = 1.0

[profiles]
directory = "{profiles}"

[observe]
period_s = {period_s}
budget_cpu_ratio = 1.0

[lint]
clear_after = 2
warn_every_s = 0

[server]
listen = "{address}"
"""
PROFILE_FILE = """
schema_version = 1
id = "vip"
[[thread_groups]]
name = "hot"
match = [{ comm_prefix = "vip-" }]
treatment = "exclusive"
cpu_fraction = 1.0
"""
HEALTHY = (
    ("db", "db-main", 0.15),
    ("db", "db-log", 0.05),
    ("vip", "vip-main", 0.55),
    ("web", "web-1", 0.1),
    ("web", "web-2", 0.1),
    ("batch", "batch", 0.2),
    ("cron", "cron", 0.1),
)
"""What every pod does on a healthy node: the worker, and its share of a CPU."""


class Node:
    """Six pods on five cores: critical, an exclusive group of its profile, normal, the rest low.

    The last one comes when the engine runs: its cpuset confines it to the fence of the first. It
    does nothing on a healthy node.
    """

    def __init__(self, engine: Path) -> None:
        pods = (
            Pod("db", 1_000_000, "1", 1),
            Pod("vip", 1_000_000, "1", 2, profile="vip"),
            Pod("web", 0, "500m", 3),
            Pod("batch", -10, "100m", 4),
            Pod("cron", -20, "100m", 5),
        )
        self.pods = {pod.name: pod for pod in pods}
        for pod in pods:
            pod.start()
        self.pods["batch"].ask(cpu_max="50000 100000", cpu_weight="400")
        write_podlist_of(pods)
        _configure(engine)

    def begin(self) -> None:
        """Start the agent, wait until it enforces, and let everybody work as on a healthy node."""
        self.agent = demo_agent.Agent()
        self.agent.wait_for("enforcing")
        self.agent.settled()
        self._admit_the_pinned()
        self.work_as_usual()

    def end(self) -> None:
        """End the agent and everybody else."""
        self.agent.stop()
        for pod in self.pods.values():
            pod.rest()

    def work_as_usual(self) -> None:
        """Let all pods do what they do on a healthy node, and nothing else."""
        for pod in self.pods.values():
            pod.rest()
        for name, worker, duty in HEALTHY:
            self.pods[name].work(worker, Manner(duty))

    def _admit_the_pinned(self) -> None:
        pinned = Pod("pinned", -30, "100m", 6)
        pinned.start()
        pinned.ask(cpuset_cpus=",".join(map(str, self.cpus_of("critical"))))
        self.pods[pinned.name] = pinned
        write_podlist_of(self.pods.values())

    def cpus_of(self, layer: str) -> list[int]:
        """Return the CPUs that a layer owns now."""
        seen = self.agent.ask("/observe?top=1")
        return next((each["cpus"] for each in seen["layers"] if each["name"] == layer), [])

    def picture(self) -> str:
        """Return who runs where, for a person to find out why something was not told."""
        seen = self.agent.ask("/observe?top=30")
        keys = ("name", "cpus", "tasks", "fallback_ratio")
        lines = [str({key: layer[key] for key in keys}) for layer in seen["layers"]]
        keys = ("pod", "comm", "tid", "layer", "cpu", "cpu_used", "run_delay_ratio", "affinity")
        lines += [str({key: each.get(key) for key in keys}) for each in seen["threads"]]
        return "\n".join([*lines, *seen["defects"]])

    def violations(self) -> list[Json]:
        """Return what stands now."""
        found: list[Json] = self.agent.ask("/violations").get("violations", [])
        return found

    def standing(self) -> set[tuple[str, str]]:
        """Return invariants and subjects of what stands now."""
        return {(each["invariant"], each["subject"]) for each in self.violations()}

    def wait_for(self, wanted: Collection[tuple[str, str]], within_s: float = STANDS_S) -> float:
        """Wait until all *wanted* stand; return the seconds, or raise NotInTime with what does."""
        return self._wait(lambda standing: standing >= set(wanted), within_s)

    def wait_for_calm(self) -> float:
        """Wait until nothing stands any more; return the seconds, or raise NotInTime."""
        return self._wait(lambda standing: not standing, CLEARS_S)

    def _wait(self, holds: Callable[[set[tuple[str, str]]], bool], within_s: float) -> float:
        began = time.monotonic()
        while not holds(standing := self.standing()):
            if time.monotonic() - began > within_s:
                raise NotInTime(f"after {within_s:.0f} s stand {sorted(standing) or 'none'}")
            time.sleep(LOOK_S)
        return time.monotonic() - began


def write_podlist_of(pods: Collection[Pod]) -> None:
    """Let the agent's pod source say what the pods are."""
    demo_agent.DIRECTORY.mkdir(exist_ok=True)
    write_podlist(demo_agent.PODLIST, pods)


def told_so_far() -> list[str]:
    """Return the lines in which the agent has logged a violation, up to now."""
    log = demo_agent.LOG.read_text(errors="replace") if demo_agent.LOG.exists() else ""
    return [line for line in log.splitlines() if TOLD in line]


def _configure(engine: Path) -> None:
    PROFILES.mkdir(parents=True, exist_ok=True)
    (PROFILES / "vip.toml").write_text(PROFILE_FILE)
    given = {"pods": demo_agent.PODLIST, "address": demo_agent.ADDRESS, "profiles": PROFILES}
    given |= {"engine": engine, "period_s": PERIOD_S}
    demo_agent.SETTINGS.write_text(SETTINGS.format(**given))
