"""The state of all nodes, by asking every agent in rounds while a page is open."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from enum import StrEnum
from typing import Any

from attrs import evolve, frozen

from temper_core import MachineError, __version__, parse_tenant_json
from temper_kube.agents import Agent, Away, Roster, roster
from temper_kube.api_server import ApiServer
from temper_plugin_dashboard.fleet.asking import ANSWER_S, AgentDoor
from temper_plugin_dashboard.fleet.node_summary import NodeSummary, summarize

AT_ONCE = 32
SLOW_S = 2.0
"""An agent answers in some 10 ms."""
ROUND_S = 60.0
"""The deadline of a round. The agents that are left then keep their last state."""
OBSERVATION = "/observe?top=1"
LARGEST_OBSERVATION = 4 * 1024 * 1024
"""Bytes. Parsed it may take thirty times as much memory, so one is parsed at a time."""
SERVER = "temper/"


class State(StrEnum):
    """The known facts of a node."""

    ANSWERS = "answers"
    SLOW = "slow"
    OTHER_VERSION = "other version"
    AWAY = "away"


@frozen
class NodeState:
    """A node, as its agent or the API server tells of it.

    Attributes:
        why: Why the state is not ``answers``. Empty otherwise.
        since: When the state began as far as this server or the API server knows, in seconds
            since 1970. None if unknown.
        answered_at: When the agent answered last, in seconds since 1970.
        took_s: How long its last answer took.
        summary: What it answered last. Kept while the agent is away.

    """

    node: str
    state: State
    why: str = ""
    since: float | None = None
    agent: Agent | None = None
    version: str = ""
    answered_at: float | None = None
    took_s: float | None = None
    summary: NodeSummary | None = None

    def document(self) -> Mapping[str, Any]:
        """Return it as JSON."""
        return {
            "node": self.node,
            "state": str(self.state),
            "why": self.why,
            "since": self.since,
            "pod": self.agent.pod if self.agent else "",
            "version": self.version,
            "answered_at": self.answered_at,
            "took_s": self.took_s,
            "seen": self.summary.document() if self.summary else None,
        }


class Survey:
    """Knows the state of each node. ``take`` is called on one thread, the rest on any."""

    def __init__(
        self, door: AgentDoor, namespace: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._door = door
        self._namespace = namespace
        self._clock = clock
        self._changing = threading.Lock()
        self._parsing = threading.Lock()
        self._pool = ThreadPoolExecutor(AT_ONCE, "agents")
        self.nodes: Mapping[str, NodeState] = {}
        self.problem = ""
        """Why the agents could not be listed in the last round, empty if they could."""
        self.notes: tuple[str, ...] = ()
        self.rounds = 0
        self.failed_rounds = 0
        """Rounds in which the agents could not be listed."""
        self.taken_at: float | None = None

    def take(self) -> None:
        """List the agents, and ask each. Failures are states, and never raised."""
        try:
            with ApiServer(self._door.access) as api:
                found = roster(api, self._namespace)
        except MachineError as error:
            self.problem = str(error)
            self.failed_rounds += 1
        else:
            self.problem, self.notes = "", found.unknown
            self._keep_only(found)
            for away in found.away:
                self._set(self._away(away))
            self._ask_all(found.agents)
        self.rounds, self.taken_at = self.rounds + 1, self._clock()

    def close(self) -> None:
        """End the threads and the connections. A round in progress ends early."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._door.close()

    def _ask_all(self, agents: tuple[Agent, ...]) -> None:
        deadline = time.monotonic() + ROUND_S

        def ask(agent: Agent) -> None:
            if time.monotonic() < deadline:
                self._set(self._asked(agent))

        list(self._pool.map(ask, agents))

    def _asked(self, agent: Agent) -> NodeState:
        known, began = self.nodes.get(agent.node), time.monotonic()
        try:
            # A round ends with its slowest answer, so that no agent may take longer than this.
            answer = self._door.ask(agent, OBSERVATION, LARGEST_OBSERVATION, ANSWER_S)
            took_s = time.monotonic() - began
            summary = self._summary(answer.body)
        except (MachineError, ValueError) as error:
            why = f"its agent {agent.pod} does not answer: {error}"
            return self._began(evolve(_known(known, agent), state=State.AWAY, why=why), known)
        server = str(answer.headers.get("server", ""))
        version = server.removeprefix(SERVER) if server.startswith(SERVER) else ""
        state, why = _judged(version, took_s)
        told = NodeState(
            node=agent.node,
            state=state,
            why=why,
            agent=agent,
            version=version,
            answered_at=self._clock(),
            took_s=round(took_s, 3),
            summary=summary,
        )
        return self._began(told, known)

    def _summary(self, body: bytes) -> NodeSummary:
        """Return the summary of an observation. Raises ValueError if it is no JSON object."""
        with self._parsing:
            document = parse_tenant_json(body)
            if not isinstance(document, dict):
                raise ValueError("the answer is not an object")  # noqa: TRY004 - as a damaged one
            return summarize(document)

    def _away(self, away: Away) -> NodeState:
        known = self.nodes.get(away.node)
        lost = evolve(
            known or NodeState(away.node, State.AWAY), agent=None, state=State.AWAY, why=away.why
        )
        since = _seconds(away.since)
        return self._began(lost, known) if since is None else evolve(lost, since=since)

    def _began(self, state: NodeState, known: NodeState | None) -> NodeState:
        """Return *state* with the moment from which on the node has had it."""
        if known is not None and known.state == state.state and known.since is not None:
            return evolve(state, since=known.since)
        return evolve(state, since=self._clock())

    def _keep_only(self, found: Roster) -> None:
        names = {each.node for each in found.agents} | {each.node for each in found.away}
        with self._changing:
            self.nodes = {name: state for name, state in self.nodes.items() if name in names}

    def _set(self, state: NodeState) -> None:
        with self._changing:
            self.nodes = {**self.nodes, state.node: state}


def _known(known: NodeState | None, agent: Agent) -> NodeState:
    return evolve(known or NodeState(agent.node, State.AWAY), agent=agent)


def _judged(version: str, took_s: float) -> tuple[State, str]:
    if took_s > SLOW_S:
        return State.SLOW, f"its last answer took {took_s:.1f} s"
    if version != __version__:
        its = version or "unknown"
        why = f"its version is {its}, and this page is of {__version__}: parts may be missing"
        return State.OTHER_VERSION, why
    return State.ANSWERS, ""


def _seconds(moment: str) -> float | None:
    """Return a time of the API server in seconds since 1970. None if it is none."""
    try:
        seconds = datetime.fromisoformat(moment).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) else None
