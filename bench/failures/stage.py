"""The node on which a failure happens: its agent, its engine, what was done to them and when."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attrs import evolve

from bench.failures.engine_files import EngineFile
from bench.failures.watch import ENABLED
from bench.ladder.agent import Agent, Json, NotInTime, agent_running
from bench.ladder.arms import Arm
from bench.ladder.kernel import PROC, Scheduler, scheduler
from bench.ladder.node import SERVER, Node, pods
from bench.ladder.pods import podlist

ENGINE = "scx_layered"
LOOK_S = 0.1
THAW_LOOK_S = 0.005
LOADED_S = 10.0
"""The busy threads of the other pod go on this long before they rest for an engine to load."""
END_S = 1800.0
PROFILE_ID = "ladder"


class Stage:
    """A node whose agent enforces. ``marks`` are times of CLOCK_MONOTONIC with what happened."""

    def __init__(self, node: Node, arm: Arm, engine: EngineFile, agents: ExitStack) -> None:
        self.node, self.engine = node, engine
        self._arm, self._agents = arm, agents
        self.agent: Agent | None = None
        self.marks: list[tuple[float, str]] = []

    def mark(self, what: str) -> None:
        """Note what happens now. The first mark is the failure."""
        self.marks.append((time.monotonic(), what))

    def start_agent(self) -> Agent:
        """Start an agent beside whatever is left of the last one."""
        files, programs = self.node.files, self.node.programs
        running = agent_running(files, programs.temper, self.node.agent_cgroup)
        self.agent = self._agents.enter_context(running)
        return self.agent

    @property
    def enforcing(self) -> Agent:
        """The agent, which must have been started."""
        if self.agent is None:
            raise NotInTime("no agent was started")
        return self.agent

    def say(self) -> Json:
        """Return what the agent says of its mode, empty while it does not answer."""
        return dict(self.enforcing.ask("/safe-mode"))

    def wait_until(self, what: str, holds: Callable[[], object]) -> None:
        """Wait until something holds, and mark it. Raise NotInTime after half an hour."""
        latest = time.monotonic() + END_S
        while not holds():
            if time.monotonic() > latest:
                raise NotInTime(f"not within {END_S:.0f} s: {what}; {self.say()}")
            time.sleep(LOOK_S)
        self.mark(what)

    def wait_for_stock(self) -> None:
        """Wait until the kernel has let go of the engine."""
        self.wait_until("the stock scheduler", lambda: scheduler().state != ENABLED)

    def wait_for_engine(self) -> None:
        """Wait until an engine is attached, and the agent says that it enforces."""
        self.wait_until("an engine is attached", lambda: scheduler().state == ENABLED)
        self.wait_until("the agent enforces", lambda: self.say().get("mode") == "enforcing")

    def rest_while_loading(self) -> None:
        """Have the busy threads rest from ten seconds on, until the kernel's scheduler changes.

        An engine takes ten minutes and more to load in the emulator beside them.
        """
        time.sleep(LOADED_S)
        self._freeze(is_frozen=True)
        threading.Thread(target=self._thaw, args=(scheduler(),), daemon=True).start()

    def rest(self) -> None:
        """Have the busy threads rest."""
        self._freeze(is_frozen=True)

    def rouse(self) -> None:
        """Have the busy threads go on, where the kernel's scheduler has not changed."""
        self._freeze(is_frozen=False)

    def _thaw(self, before: Scheduler) -> None:
        while scheduler() == before:
            time.sleep(THAW_LOOK_S)
        self._freeze(is_frozen=False)

    def _freeze(self, *, is_frozen: bool) -> None:
        (self.node.places.background / "cgroup.freeze").write_text(str(int(is_frozen)))
        self.mark("the busy threads rest" if is_frozen else "the busy threads go on")

    def engines(self) -> list[int]:
        """Return the process ids of all engines."""
        return [int(each.name) for each in PROC.iterdir() if each.name.isdigit() and _is(each)]

    def list_pods(self, priority: int, profile: str = "") -> None:
        """Have the request server's pod be of another priority, or with a workload profile."""
        server, *others = pods(self._arm, self.node.request, cpus=os.cpu_count() or 1)
        changed = evolve(server, priority=priority, profile=profile)
        self.node.files.pods.write_text(podlist([changed, *others]))

    def list_no_pods(self) -> None:
        """Have the node without pods. The programs of those that were there go on."""
        self.node.files.pods.write_text(podlist([]))

    def layers_of_server(self) -> set[str]:
        """Return the layers of the threads of the request server's pod, none of a pod that left."""
        return set(self.enforcing.layer_of(SERVER).values())


def _is(process: Path) -> bool:
    try:
        return (process / "comm").read_text().strip() == ENGINE
    except OSError:  # it has ended
        return False


@contextmanager
def staged(node: Node, arm: Arm, engine: EngineFile, profile: str) -> Iterator[Stage]:
    """Have a node under the arm, with a workload profile in the agent's directory."""
    engine.be_real()
    with ExitStack() as agents:
        stage = Stage(node, arm, engine, agents)
        node.prepare(arm)
        (node.files.profiles / "failures.toml").write_text(profile)
        stage.start_agent().wait_for("enforcing")
        yield stage
