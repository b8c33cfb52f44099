"""The node: a database with a neighbour in its pod, its clients, a training, and an agent."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import agent as demo_agent
import kernel
import programs
from pods import Container, Pod
from workloads import write_podlist

Json = dict[str, Any]
Rows = list[Json]

PROFILES = demo_agent.DIRECTORY / "profiles"
LOOK_S = 1.0
PLACED_S = 120.0
QUERIES = 100
SETTINGS = """
[scheduler]
engine = "{engine}"
start_deadline_s = 400.0

[plan]
headroom_cores = 0

[pods]
source = "file"
file = "{pods}"
poll_s = 1.0

[profiles]
directory = "{profiles}"
enable = ["mysql-innodb", "pytorch-training"]

[observe]
period_s = 2.0
budget_cpu_ratio = 1.0
top_threads = 500

[server]
listen = "{address}"
"""


class Node:
    """Three pods on seven cores, of which the last stays free for everybody."""

    def __init__(self, engine: Path, installed: programs.Installed) -> None:
        self._installed = installed
        mysql = Container("mysql", "mysql:8.0.33", "2250m")
        exporter = Container("exporter", "prom/mysqld-exporter:v0.17.2", "100m")
        trainer = Container("trainer", "pytorch/pytorch:2.15.0-cpu", "1")
        self.pods = {
            pod.name: pod
            for pod in (
                Pod("db", 1, 1_000_000, [mysql, exporter]),
                Pod("train", 2, 0, [trainer]),
                Pod("clients", 3, -10, [Container("sysbench", "sysbench:1", "100m")]),
            )
        }
        self.pids: dict[str, int] = {}
        self._counted: dict[int, int] = {}
        for pod in self.pods.values():
            pod.start()
        _configure(engine, self.pods)

    def begin(self) -> Json:
        """Start the agent; return the first observation in which it enforces."""
        self.agent = demo_agent.Agent()
        seen: Json = self.agent.wait_for("enforcing")
        return seen

    def end(self) -> None:
        """End the agent and everybody else."""
        self.agent.stop()
        for pod in self.pods.values():
            pod.end()

    def serve(self) -> None:
        """Start the database and its neighbour, and then the clients."""
        self._run("db", "exporter", [self._installed.python, "-c", programs.NEIGHBOUR])
        log = self._run("db", "mysql", programs.server(self._installed))
        programs.wait_for_line(log, "ready for connections")
        self.ask_by(programs.MANY_CONNECTIONS, programs.READS_AND_WRITES)

    def ask_by(self, connections: int, mix: str) -> None:
        """Ask the database by so many connections in place of those before."""
        self.pods["clients"].end()
        self._run("clients", "sysbench", programs.clients(connections, mix))
        first = programs.answered()
        self.wait_until("queries", lambda: programs.answered() > first + QUERIES)

    def train(self) -> None:
        """Start the training, and wait for its first steps."""
        log = self._run("train", "trainer", programs.trainer(self._installed))
        programs.wait_for_line(log, "step")

    def rows(self, pod: str) -> Rows:
        """Return all threads of a pod: what is planned, its hint, and the engine's own record."""
        found: Rows = self.agent.ask(f"/explain?pod=shop/{pod}").get("threads", [])
        return found

    def threads(self, container: str) -> Rows:
        """Return those rows of its pod that are in a container, by its cgroup."""
        [pod] = [pod for pod in self.pods.values() if container in pod.names]
        tids = pod.tids(container)
        return [row for row in self.rows(pod.name) if row["tid"] in tids]

    def observe(self) -> Json:
        """Return what the agent observes now."""
        seen: Json = self.agent.ask("/observe?top=500")
        return seen

    def count_switches(self, rows: Rows) -> None:
        """Remember how often these threads have had a CPU so far."""
        self._counted.update(_switches(row["tid"] for row in rows))

    @property
    def awake(self) -> set[int]:
        """The threads that have been given a CPU since they were counted, by the kernel.

        Whoever sleeps since before it got its name follows its hint only when it wakes up.
        """
        now = _switches(self._counted)
        return {tid for tid, count in now.items() if count > self._counted[tid]}

    def wait_until(self, what: str, holds: Callable[[], object]) -> float:
        """Wait until *holds*, looked at once a second; return the seconds, or raise NotInTime."""

        def looked() -> object:
            time.sleep(LOOK_S)  # every answer takes emulated CPU time from the agent's loop
            return holds()

        return kernel.wait_until(what, looked, PLACED_S)

    def _run(self, pod: str, container: str, command: list[str | Path]) -> Path:
        log = demo_agent.DIRECTORY / f"{container}.log"
        self.pids[container] = self.pods[pod].run(container, command, log)
        return log


def load_failures() -> dict[str, str]:
    """Return the samples of the metric that counts them, by their labels."""
    with urllib.request.urlopen(f"http://{demo_agent.ADDRESS}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    found = (line for line in lines if line.startswith("temper_profile_load_failures{"))
    return dict(line.partition("{")[2].split("} ") for line in found)


def _switches(tids: Iterable[int]) -> dict[int, int]:
    found = {}
    for tid in tids:
        with suppress(OSError):
            lines = Path(f"/proc/{tid}/status").read_text().splitlines()
            found[tid] = sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
    return found


def _configure(engine: Path, pods: Mapping[str, Pod]) -> None:
    PROFILES.mkdir(parents=True)
    write_podlist(demo_agent.PODLIST, pods.values())
    given = {"pods": demo_agent.PODLIST, "address": demo_agent.ADDRESS, "profiles": PROFILES}
    demo_agent.SETTINGS.write_text(SETTINGS.format(engine=json.dumps(str(engine))[1:-1], **given))
