"""The agents of a cluster: which node has one, and why a node has none that can be asked."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from temper_core.observed import Row, rows, table, text
from temper_kube.api_server import METADATA, ApiServer
from temper_kube.failures import ForbiddenError
from temper_kube.list_pages import Json

AGENTS = "app.kubernetes.io/name=temper,app.kubernetes.io/component=agent"
USUAL_PORT = 9100


@frozen
class Agent:
    """The agent of a node, with the pod that it runs in. ``address`` is that of the pod."""

    node: str
    namespace: str
    pod: str
    port: int
    address: str = ""

    @property
    def proxy_path(self) -> str:
        """The path at which the API server passes requests on to the agent, without a slash."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.pod}:{self.port}/proxy"


@frozen
class Away:
    """A node whose agent gives no answer, and why.

    ``since`` is a time of RFC 3339 as the API server tells it, empty if it tells none.
    """

    node: str
    why: str
    since: str = ""


@frozen
class Roster:
    """The agents that can be asked, the nodes without one, and what could not be listed."""

    agents: tuple[Agent, ...]
    away: tuple[Away, ...] = ()
    unknown: tuple[str, ...] = ()


def roster(api: ApiServer, namespace: str) -> Roster:
    """Return the agents in *namespace*. Raises MachineError if they cannot be listed."""
    ready: dict[str, Agent] = {}
    unready: dict[str, Away] = {}
    for item in api.list(f"/api/v1/namespaces/{namespace}/pods", AGENTS):
        agent, condition = agent_of(item), _ready_condition(item)
        if text(condition, "status") == "True":
            ready[agent.node] = agent
        else:
            why = f"its agent {agent.pod} is not ready"
            unready[agent.node] = Away(agent.node, why, text(condition, "lastTransitionTime"))
    unknown: tuple[str, ...] = ()
    nodes = {*ready, *unready}
    try:
        nodes.update(text(item["metadata"], "name") for item in _nodes(api))
    except ForbiddenError as error:
        unknown = (f"nodes without an agent are not known: {error}",)
    away = [
        unready.get(node, Away(node, "no agent runs there"))
        for node in sorted(nodes - ready.keys())
        if node
    ]
    return Roster(tuple(ready[node] for node in sorted(ready)), tuple(away), unknown)


def agent_of(item: Json) -> Agent:
    """Return the agent of a Pod object."""
    metadata, spec = item["metadata"], item.get("spec") or {}
    return Agent(
        text(spec, "nodeName"),
        text(metadata, "namespace"),
        text(metadata, "name"),
        _port(spec),
        text(table(item, "status"), "podIP"),
    )


def _nodes(api: ApiServer) -> list[Json]:
    return api.list("/api/v1/nodes", accept=METADATA)


def _port(spec: Mapping[str, Any]) -> int:
    """Return the first port of the first container, where the agent serves."""
    for container in rows(spec, "containers"):
        for port in rows(container, "ports"):
            number = port.get("containerPort")
            if isinstance(number, int):
                return number
    return USUAL_PORT


def _ready_condition(item: Json) -> Row:
    conditions = rows(table(item, "status"), "conditions")
    return next((each for each in conditions if each.get("type") == "Ready"), {})
