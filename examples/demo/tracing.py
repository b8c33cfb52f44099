"""A trace of the node under the engine, with threads that keep others from running."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import kernel
from agent import SETTINGS, temper
from node import Node
from observations import Json, layer_of
from workloads import BURST_S, Sleeper

RECORDED_S = 2
# A burst of the culprit begins within each burst of the victim.
VICTIM_SLEEPS_S, CULPRIT_SLEEPS_S = 3 * BURST_S, BURST_S / 2
TRACE = Path("/run/demo/x.pftrace")


@dataclass(frozen=True)
class Scene:
    """A thread, who keeps it from running, and the CPU of each. The engine is no sleeper."""

    victim: Sleeper
    culprit: Sleeper | None
    victims_cpu: int
    culprits_cpu: int

    @contextmanager
    def played(self) -> Iterator[None]:
        """Have both work."""
        self.victim.work_on(self.victims_cpu, VICTIM_SLEEPS_S)
        if self.culprit is not None:
            self.culprit.work_on(self.culprits_cpu, CULPRIT_SLEEPS_S)
        try:
            yield
        finally:
            for worker in filter(None, (self.victim, self.culprit)):
                worker.work_no_more()

    def pids(self) -> dict[str, int]:
        """Return the process ids of both."""
        culprit = self.culprit.pid if self.culprit is not None else kernel.engines()[0]
        return {"victim": self.victim.pid, "culprit": culprit}


def trace(node: Node) -> None:
    """Trace scenes whose culprits are known, and keep the trace with these beside the report.

    Nobody has to read the trace in the guest, where reading is slow.
    """
    report = node.report
    report.step(f"The events of the scheduler are recorded for {RECORDED_S} s")
    scenes = _scenes(node)
    with ExitStack() as played:
        for scene in scenes.values():
            played.enter_context(scene.played())
        played.enter_context(engine_on(scenes["engine"].culprits_cpu))
        told = temper(
            *("trace", "capture", "--seconds", str(RECORDED_S), "--out", str(TRACE)),
            *("--output", "json", "--settings", str(SETTINGS)),
        )
    entry = _parsed(told)
    report.claim(
        "traced",
        TRACE.exists() and entry.get("lost") == 0 and entry.get("ended_by") == "seconds",
        f"{entry['events']} events, {entry['bytes']} bytes" if entry else told,
    )
    if entry:
        temper("trace", "delete", entry["id"], "--settings", str(SETTINGS))
    _keep(report.directory, {name: scene.pids() for name, scene in scenes.items()})


def _scenes(node: Node) -> dict[str, Scene]:
    """Return the scenes by name. The agent knows the threads for long, so the trace names them."""
    observation = node.agent.ask("/observe?top=500")
    first, second = sorted(layer_of(observation, "payments")["cpus"])[:2]
    shared = _pods_of_a_layer(observation, node.pods)
    cpus = _cpus_of(observation, layer_of(observation, shared[0])["name"])
    victim, sibling = node.pods["payments"].members[:2]
    one, other = (node.pods[name].members for name in shared)
    return {
        "sibling": Scene(victim, sibling, first, second),
        "neighbour": Scene(one[0], other[0], cpus[-1], cpus[-1]),
        "engine": Scene(one[1], None, cpus[-2], cpus[-2]),
    }


def _pods_of_a_layer(observation: Json, pods: Iterable[str]) -> list[str]:
    """Return two pods whose threads are in one layer."""
    found: dict[str, list[str]] = {}
    for name in pods:
        found.setdefault(layer_of(observation, name)["name"], []).append(name)
    return next(names[:2] for names in found.values() if len(names) > 1)


def _cpus_of(observation: Json, layer: str) -> list[int]:
    """Return the CPUs that no other layer owns: an open layer owns none."""
    others = {cpu for row in observation["layers"] if row["name"] != layer for cpu in row["cpus"]}
    return sorted(set(range(os.cpu_count() or 1)) - others)


@contextmanager
def engine_on(cpu: int) -> Iterator[None]:
    """Keep the engine's own threads on that CPU."""
    before: Mapping[int, set[int]] = {tid: os.sched_getaffinity(tid) for tid in _threads()}
    for tid in before:
        os.sched_setaffinity(tid, {cpu})
    try:
        yield
    finally:
        for tid, cpus in before.items():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(tid, cpus)


def _threads() -> list[int]:
    (engine,) = kernel.engines()
    return [int(path.name) for path in Path(f"/proc/{engine}/task").iterdir()]


def _parsed(told: str) -> Json:
    """Return the entry that a capture prints after its progress, or nothing."""
    try:
        return dict(json.loads(told[told.index("{") : told.rindex("}") + 1]))
    except ValueError:
        return {}


def _keep(directory: Path | None, culprits: Mapping[str, Mapping[str, int]]) -> None:
    if directory is not None and TRACE.exists():
        (directory / TRACE.name).write_bytes(TRACE.read_bytes())
        (directory / "culprits.json").write_text(json.dumps(culprits))
    TRACE.unlink(missing_ok=True)
