"""The node under test: its pods, and an agent for each arm."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Self

from attrs import frozen

from bench.ladder.agent import Agent, Files, Json, agent_running, hashed
from bench.ladder.arms import CRITICAL, Arm
from bench.ladder.pods import Cgroups, Pod, podlist, running
from bench.ladder.points import Places

AGENT_CGROUP = Path("system.slice/temper.service")
BACKGROUND_PRIORITY = -1000
SERVER = "api"
IDLE = ("sleep", "infinity")


class WrongPlan(Exception):  # noqa: N818 - reads as the fact it reports
    """Raised when the server's pod is demoted and should not be, or the other way round."""


@frozen
class Programs:
    """The load program, the engine and the ``temper`` command."""

    load: Path
    engine: Path
    temper: Path


@frozen
class Node:
    """What is the same for all arms. ``request`` is that of the server's pod in millicores."""

    cgroups: Cgroups
    programs: Programs
    files: Files
    places: Places
    agent_cgroup: Path
    request: int

    @classmethod
    def made(cls, cgroups: Cgroups, programs: Programs, directory: Path, request: int) -> Self:
        """Make the cgroups of both pods and of the agent, and a directory for files."""
        directory.mkdir(parents=True, exist_ok=True)
        server, background = map(cgroups.make_pod, pods(Arm(), request))
        places = Places(programs.load, server, background, directory)
        agent = cgroups.make(AGENT_CGROUP)
        return cls(cgroups, programs, Files(directory), places, agent, request)

    def prepare(self, arm: Arm) -> Sequence[Path]:
        """Make the pods' cgroups, and write what an agent of the arm reads. Return the cgroups."""
        present = pods(arm, self.request, 0, cpus := os.cpu_count() or 1)
        cgroups = [self.cgroups.make_pod(pod) for pod in present]
        self.cgroups.weigh_classes(present, cpus)
        self.files.write(arm, self.programs.engine, podlist(present))
        return cgroups

    @contextmanager
    def under(self, arm: Arm) -> Iterator[Agent]:
        """Run an agent for the arm. Yield it when the node is scheduled as the arm says.

        Raise WrongPlan where the plan demotes a critical server against what the arm says.
        """
        with ExitStack() as programs:
            for cgroup in self.prepare(arm)[2:]:
                programs.enter_context(running(cgroup, IDLE))
            agent = programs.enter_context(
                agent_running(self.files, self.programs.temper, self.agent_cgroup)
            )
            agent.wait_for("safe_mode" if arm.is_stock else "enforcing")
            if arm.profile_id:
                agent.wait_for_profile(SERVER, arm.profile_id)
                agent.wait_for("enforcing")
            _check_demotion(agent, arm)
            yield agent

    def limit(self, arm: Arm, limit: int) -> None:
        """Limit the server's pod to millicores, 0 for no limit. The agent's PodList says so."""
        present = pods(arm, self.request, limit, os.cpu_count() or 1)
        for pod in present:
            self.cgroups.make_pod(pod)
        self.files.pods.write_text(podlist(present))

    def told(self, agent: Agent, arm: Arm) -> Json:
        """Return what a record says of the arm: the engine, and hashes of plan and profile."""
        seen = agent.ask("/observe?top=1")
        return {
            "engine": "" if arm.is_stock else seen.get("engine") or "",
            "plan": "" if arm.is_stock else agent.plan_hash(),
            "profile": hashed(arm.profile or _shipped(arm.pack)),
            "demoted": not arm.is_stock and agent.is_demoted(SERVER),
        }


def _check_demotion(agent: Agent, arm: Arm) -> None:
    if arm.is_stock or arm.priority != CRITICAL:
        return
    is_demoted = agent.is_demoted(SERVER)
    if is_demoted != arm.is_crowded:
        raise WrongPlan(f"{SERVER} is {'' if is_demoted else 'not '}demoted: {agent.layers()}")


def pods(arm: Arm, request: int, limit: int = 0, cpus: int = 1) -> Sequence[Pod]:
    """Return the pod with the request server, and the best-effort pod for the background.

    A crowded node has a third one, which idles.
    """
    present = (
        Pod(SERVER, 1, arm.priority, request, limit, arm.profile_id),
        Pod("batch", 2, BACKGROUND_PRIORITY),
    )
    idle = Pod("other", 3, arm.priority, cpus * 1000 - request)
    return (*present, idle) if arm.is_crowded else present


def _shipped(pack: str) -> str:
    packs = files("temper_plugin_builtin_profiles.packs")
    return (packs / f"{pack}.toml").read_text() if pack else ""
