"""The fleet: every node with its agent's annotations and the agent's pod."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from functools import partial
from typing import Any

from attrs import evolve, field, frozen

from temper_core import Tier
from temper_kube.api_server import ApiServer
from temper_kube.bounded_answers import bounded_answers
from temper_kube.failures import ForbiddenError
from temper_kube.list_pages import Json
from temper_plugin_kubernetes.annotation_requests import RESTORE
from temper_plugin_kubernetes.annotations import (
    GENERATION,
    LEFT,
    LONGEST_MESSAGE,
    MESSAGE,
    RESTORED,
    STATUS,
    UPDATED,
    tier_key,
)
from temper_plugin_kubernetes.operators.findings import Unknown

AGENTS = "app.kubernetes.io/name=temper,app.kubernetes.io/component=agent"
CANARY = "temper-agent-canary"
STALE_S = 600.0
"""An agent writes at least every five minutes. Density scores ignore older data."""
NOT_RUNNING = ("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError",
               "CreateContainerError", "RunContainerError", "InvalidImageName")  # fmt: skip


class NodeStanding(IntEnum):
    """The state of a node, worst first."""

    FAILING = 0
    GONE = 1
    SAFE_MODE = 2
    STALE = 3
    SILENT = 4
    NO_AGENT = 5
    REQUESTED = 6
    OBSERVING = 7
    RELOADING = 8
    ENFORCING = 9

    @property
    def text(self) -> str:
        """The state as text."""
        return _TOLD[self]

    @property
    def needs_a_look(self) -> bool:
        """Whether the state is a problem that no operator requested."""
        return self <= NodeStanding.SILENT


_TOLD = {
    NodeStanding.FAILING: "agent failing",
    NodeStanding.GONE: "agent gone",
    NodeStanding.SAFE_MODE: "in safe mode",
    NodeStanding.STALE: "stale",
    NodeStanding.SILENT: "silent",
    NodeStanding.NO_AGENT: "without an agent",
    NodeStanding.REQUESTED: "in safe mode on request",
    NodeStanding.OBSERVING: "only observing",
    NodeStanding.RELOADING: "reloading",
    NodeStanding.ENFORCING: "enforcing",
}
_BY_MODE = {
    "enforcing": NodeStanding.ENFORCING,
    "reloading": NodeStanding.RELOADING,
    "observe_only": NodeStanding.OBSERVING,
    "safe_mode": NodeStanding.SAFE_MODE,
}


@frozen
class AgentPod:
    """The pod of a node's agent."""

    name: str
    namespace: str
    node: str
    phase: str
    is_ready: bool
    restarts: int
    version: str
    waiting: str
    is_canary: bool

    @property
    def is_failing(self) -> bool:
        """Whether the pod cannot run."""
        return self.waiting in NOT_RUNNING or self.phase in ("Failed", "Unknown")

    @property
    def text(self) -> str:
        """The pod's state in one word."""
        if self.waiting:
            return self.waiting
        return self.phase if self.is_ready or self.phase != "Running" else "NotReady"


@frozen
class FleetNode:
    """A node. ``age_s`` is the age of the agent's numbers, None without a time that can be read.

    It is negative if the clock of the node is ahead of this machine's.

    ``are_pods_known`` is False if the agents' pods may not be listed. A missing agent is then no
    finding.
    """

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    kernel: str
    os_image: str
    kubelet: str
    provider: str
    is_ready: bool
    agent: AgentPod | None = None
    age_s: float | None = None
    are_pods_known: bool = field(default=True)

    @property
    def mode(self) -> str:
        """The agent's mode. Empty if it has written none."""
        return self.annotations.get(STATUS, "").partition(":")[0]

    @property
    def reason(self) -> str:
        """The reason of that mode."""
        return self.annotations.get(STATUS, "").partition(":")[2]

    @property
    def message(self) -> str:
        """The reason as a sentence."""
        return self.annotations.get(MESSAGE, "")

    @property
    def generation(self) -> str:
        """The number of the configuration in force."""
        return self.annotations.get(GENERATION, "")

    @property
    def restore(self) -> tuple[str, str, str]:
        """The times at which restoring was requested and done, and the leftovers."""
        return tuple(self.annotations.get(key, "") for key in (RESTORE, RESTORED, LEFT))  # type: ignore[return-value]

    def number(self, tier: Tier, what: str) -> int | None:
        """Return a tier's ``pods`` or ``cpu-millis``. None if the annotation is no number."""
        return _number(self.annotations.get(tier_key(tier, what), ""))

    @property
    def generation_number(self) -> int | None:
        """The generation as a number. None if it is none."""
        return _number(self.generation)

    @property
    def standing(self) -> NodeStanding:
        """The state of the node."""
        agent, has_said = self.agent, bool(self.mode)
        if agent is not None and agent.is_failing:
            return NodeStanding.FAILING
        if agent is None and self.are_pods_known:
            return NodeStanding.GONE if has_said else NodeStanding.NO_AGENT
        if not has_said:
            return NodeStanding.SILENT if agent is not None else NodeStanding.NO_AGENT
        if self.mode == "safe_mode" and self.reason == "requested":
            return NodeStanding.REQUESTED
        state = _BY_MODE.get(self.mode, NodeStanding.SILENT)
        if state is NodeStanding.SAFE_MODE:
            return state
        return NodeStanding.STALE if self.is_stale else state

    @property
    def is_stale(self) -> bool:
        """Whether the annotations are too old, from the future, or of no time that can be read."""
        return UPDATED in self.annotations and (self.age_s is None or abs(self.age_s) > STALE_S)


@frozen
class Fleet:
    """All nodes, worst first, and the parts that could not be read."""

    nodes: tuple[FleetNode, ...]
    unknown: tuple[Unknown, ...] = ()

    @property
    def agents(self) -> Iterator[AgentPod]:
        """The agents' pods."""
        return (node.agent for node in self.nodes if node.agent is not None)


def read_fleet(
    api: ApiServer, namespace: str, selector: str = "", *, now: datetime | None = None
) -> Fleet:
    """Read nodes, and agents in *namespace*. Raise ForbiddenError if nodes may not be listed."""
    unknown: tuple[Unknown, ...] = ()
    agents: dict[str, AgentPod] = {}
    with bounded_answers():
        nodes = api.read("/api/v1/nodes", partial(_node, now=now or datetime.now(UTC)), selector)
        try:
            agents = by_node(read_agents(api, namespace))
        except ForbiddenError as error:
            unknown = (Unknown("the agents' pods", str(error)),)
    fleet_nodes = [
        evolve(node, agent=agents.get(node.name), are_pods_known=not unknown) for node in nodes
    ]
    return Fleet(tuple(sorted(fleet_nodes, key=lambda node: (node.standing, node.name))), unknown)


def read_agents(api: ApiServer, namespace: str) -> tuple[AgentPod, ...]:
    """Return the agents' pods. In other namespaces any author of a pod can use their labels."""
    return api.read(f"/api/v1/namespaces/{namespace}/pods", agent_pod, AGENTS)


def by_node(pods: Iterable[AgentPod]) -> dict[str, AgentPod]:
    """Return the agents by node. A ready one takes precedence if a rollout runs two on a node."""
    agents: dict[str, AgentPod] = {}
    for pod in sorted(pods, key=lambda agent: agent.is_ready):
        if pod.node:
            agents[pod.node] = pod
    return agents


def agent_pod(item: Json) -> AgentPod:
    """Return the record of an agent's pod."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    containers = status.get("containerStatuses") or ()
    owners = [owner.get("name", "") for owner in metadata.get("ownerReferences") or ()]
    images = [container.get("image", "") for container in spec.get("containers") or ()]
    waiting = [(status.get("state") or {}).get("waiting") or {} for status in containers]
    return AgentPod(
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        node=spec.get("nodeName") or _meant_for(spec),
        phase=status.get("phase", "Unknown"),
        is_ready=_is_ready(status.get("conditions") or ()),
        restarts=sum(int(container.get("restartCount", 0)) for container in containers),
        version=version_of(images[0]) if images else "",
        waiting=next((state["reason"] for state in waiting if state.get("reason")), ""),
        is_canary=CANARY in owners or metadata["name"].startswith(f"{CANARY}-"),
    )


def _meant_for(spec: Json) -> str:
    """Return the node of an unbound pod of a DaemonSet. Empty if its affinity names none."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for match in term.get("matchFields") or ():
            if match.get("key") == "metadata.name" and match.get("operator") == "In":
                return str(match["values"][0])
    return ""


def version_of(image: str) -> str:
    """Return an image's tag, or the beginning of its digest."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag or digest[:19]


def _number(text: str) -> int | None:
    """Return the number. None for other text: any client with the right can write annotations."""
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def _node(item: Json, now: datetime) -> FleetNode:
    metadata, status = item["metadata"], item.get("status") or {}
    info: Mapping[str, Any] = status.get("nodeInfo") or {}
    annotations = {
        # No agent writes more, and a value of 256 KiB would fill each table.
        key: value[:LONGEST_MESSAGE]
        for key, value in (metadata.get("annotations") or {}).items()
    }
    return FleetNode(
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        annotations=annotations,
        kernel=info.get("kernelVersion", ""),
        os_image=info.get("osImage", ""),
        kubelet=info.get("kubeletVersion", ""),
        provider=(item.get("spec") or {}).get("providerID", "").partition(":")[0],
        is_ready=_is_ready(status.get("conditions") or ()),
        age_s=_age(annotations.get(UPDATED, ""), now),
    )


def _is_ready(conditions: Sequence[Mapping[str, str]]) -> bool:
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in conditions
    )


def _age(text: str, now: datetime) -> float | None:
    try:
        then = datetime.fromisoformat(text)
        return (now - then).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None
