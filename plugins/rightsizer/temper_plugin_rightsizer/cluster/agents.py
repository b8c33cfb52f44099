"""The agents of a cluster, and what they answer through the API server."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

from attrs import frozen

from temper_core import MachineError
from temper_core.observed import rows, text
from temper_kube.access import Access
from temper_kube.api_server import METADATA, ApiServer
from temper_kube.failures import ForbiddenError
from temper_kube.list_pages import Json

AGENTS = "app.kubernetes.io/name=temper,app.kubernetes.io/component=agent"
USUAL_PORT = 9100
AT_ONCE = 16
ANSWER_S = 30.0
ALL_S = 300.0
"""The deadline for all agents."""


@frozen
class Agent:
    """The agent of a node, with the pod that it runs in."""

    node: str
    namespace: str
    pod: str
    port: int


@frozen
class Away:
    """A node whose agent gives no answer, and why."""

    node: str
    why: str


@frozen
class Roster:
    """The agents that can be asked, the nodes without one, and what could not be listed."""

    agents: tuple[Agent, ...]
    away: tuple[Away, ...] = ()
    unknown: tuple[str, ...] = ()


def roster(api: ApiServer, namespace: str) -> Roster:
    """Return the agents in *namespace*. Raises MachineError if they cannot be listed."""
    ready: dict[str, Agent] = {}
    unready: dict[str, str] = {}
    for item in api.list(f"/api/v1/namespaces/{namespace}/pods", AGENTS):
        agent = _agent(item)
        if _is_ready(item):
            ready[agent.node] = agent
        else:
            unready[agent.node] = f"its agent {agent.pod} is not ready"
    unknown: tuple[str, ...] = ()
    nodes = {*ready, *unready}
    try:
        nodes.update(_name(item) for item in api.list("/api/v1/nodes", accept=METADATA))
    except ForbiddenError as error:
        unknown = (f"nodes without an agent are not known: {error}",)
    away = [
        Away(node, unready.get(node, "no agent runs there"))
        for node in sorted(nodes - ready.keys())
        if node
    ]
    return Roster(tuple(ready[node] for node in sorted(ready)), tuple(away), unknown)


def ask_agents(
    access: Access, agents: Sequence[Agent], query: Mapping[str, str]
) -> Iterator[tuple[Agent, Json | Away]]:
    """Yield each agent with its answer to ``/rightsize``, or why there is none.

    A few answers are in memory at a time. An interruption cancels the remaining requests. Raises
    ForbiddenError if the first agent may not be asked, as then none may.
    """
    deadline = time.monotonic() + ALL_S
    for agent in agents[:1]:
        try:
            yield agent, _ask(access, agent, query)
        except ForbiddenError:
            raise
        except MachineError as problem:
            yield agent, Away(agent.node, str(problem))
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for begin in range(1, len(agents), AT_ONCE):
            some = agents[begin : begin + AT_ONCE]
            answers = pool.map(lambda agent: _tried(access, agent, query, deadline), some)
            yield from zip(some, answers, strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def _tried(access: Access, agent: Agent, query: Mapping[str, str], deadline: float) -> Json | Away:
    if time.monotonic() > deadline:
        return Away(agent.node, f"not reached within {ALL_S:g} s")
    try:
        return _ask(access, agent, query)
    except MachineError as problem:
        return Away(agent.node, str(problem))


def _ask(access: Access, agent: Agent, query: Mapping[str, str]) -> Json:
    """Return the agent's answer. Raises MachineError if it is none."""
    pod = f"/api/v1/namespaces/{agent.namespace}/pods/{agent.pod}:{agent.port}"
    with ApiServer(access, ANSWER_S) as api:
        answer = api.get(f"{pod}/proxy/rightsize?{urlencode(query)}")
    containers = rows(answer, "containers")
    if "containers" not in answer or not all("demand" in row for row in containers):
        raise MachineError("the agent's answer has no demand: is its version another?")
    return answer


def _agent(item: Json) -> Agent:
    metadata, spec = item["metadata"], item.get("spec") or {}
    return Agent(
        text(spec, "nodeName"), text(metadata, "namespace"), text(metadata, "name"), _port(spec)
    )


def _port(spec: Mapping[str, Any]) -> int:
    """Return the first port of the first container, where the agent serves."""
    for container in rows(spec, "containers"):
        for port in rows(container, "ports"):
            number = port.get("containerPort")
            if isinstance(number, int):
                return number
    return USUAL_PORT


def _is_ready(item: Json) -> bool:
    conditions = rows(item.get("status") or {}, "conditions")
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in conditions
    )


def _name(item: Json) -> str:
    return text(item["metadata"], "name")
