"""The node under test: its pods, and an agent for each arm."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from attrs import frozen

from bench.ladder.agent import Agent, Files, Json, agent_running, hashed
from bench.ladder.arms import Arm
from bench.ladder.pods import Cgroups, Pod, podlist
from bench.ladder.points import Places

AGENT_CGROUP = Path("system.slice/temper-ladder.service")
BACKGROUND_PRIORITY = -1000


@frozen
class Programs:
    """The load program, the engine and the ``temper`` command."""

    load: Path
    engine: Path
    temper: Path


@frozen
class Node:
    """What is the same for all arms. ``request`` is that of the server's pod in millicores."""

    programs: Programs
    files: Files
    places: Places
    agent_cgroup: Path
    request: int

    @classmethod
    def made(cls, cgroups: Cgroups, programs: Programs, directory: Path, request: int) -> Self:
        """Make the cgroups of both pods and of the agent, and a directory for files."""
        directory.mkdir(parents=True, exist_ok=True)
        api, batch = pods(Arm(), request)
        server, background = cgroups.make_pod(api), cgroups.make_pod(batch)
        cgroups.weigh_classes((api, batch), os.cpu_count() or 1)
        places = Places(programs.load, server, background, directory)
        return cls(programs, Files(directory), places, cgroups.make(AGENT_CGROUP), request)

    @contextmanager
    def under(self, arm: Arm) -> Iterator[Agent]:
        """Run an agent for the arm. Yield it when the node is scheduled as the arm says."""
        self.files.write(arm, self.programs.engine, podlist(pods(arm, self.request)))
        with agent_running(self.files, self.programs.temper, self.agent_cgroup) as agent:
            agent.wait_for("safe_mode" if arm.is_stock else "enforcing")
            yield agent

    def told(self, agent: Agent, arm: Arm) -> Json:
        """Return what a record says of the arm: the engine, and hashes of plan and profile."""
        seen = agent.ask("/observe?top=1")
        return {
            "engine": "" if arm.is_stock else seen.get("engine") or "",
            "plan": "" if arm.is_stock else agent.plan_hash(),
            "profile": hashed(arm.profile),
        }


def pods(arm: Arm, request: int) -> Sequence[Pod]:
    """Return the pod with the request server, and the best-effort pod for the background."""
    profile = "ladder" if arm.profile else ""
    return (
        Pod("api", 1, arm.priority, request, profile=profile),
        Pod("batch", 2, BACKGROUND_PRIORITY),
    )
