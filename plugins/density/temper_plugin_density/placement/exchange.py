"""Requests and answers of kube-scheduler: ExtenderArgs and HostPriorityList.

Source: k8s.io/kube-scheduler/extender/v1. The keys of a request are capitalised, those of an answer
are not. A request has ``NodeNames`` with ``nodeCacheCapable``, else ``Nodes``. Scores are 0 to 10.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import field, frozen

from temper_core import InputError, parse_tenant_json
from temper_plugin_density.placement.asking import PodDemand, PodReader
from temper_plugin_density.placement.facts import NodeFacts, read_node
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.scoring import Score
from temper_plugin_density.pod_bounds import check_containers
from temper_serving.values import MOST_VALUES, values_in

MOST_NODES = 10_000
"""A scheduler sends the nodes that it sampled, which are 5 % of the largest clusters' 65,000."""
LONGEST_NAME = 253
"""The API server's bound for the name of a node."""


@frozen
class Question:
    """A pod and its candidate nodes. None stands for all known nodes.

    ``strangers`` are nodes of the request, used for those that the watch has not reported yet.
    """

    demand: PodDemand
    nodes: tuple[str, ...] | None = None
    strangers: Mapping[str, NodeFacts] = field(factory=dict)

    def scores(self, ledger: Ledger) -> tuple[Score, ...]:
        """Score each node."""
        names = ledger.nodes if self.nodes is None else self.nodes
        return ledger.scores(self.demand, names, self.strangers)


def read_question(body: bytes, reader: PodReader) -> Question:
    """Read ExtenderArgs. Raise InputError with one line for anything else."""
    values = _object(body)
    pod = values.get("Pod")
    if not isinstance(pod, dict):
        raise InputError("Pod: must be a Pod object (the keys of ExtenderArgs are capitalised)")
    names, nodes = values.get("NodeNames"), values.get("Nodes")
    demand = _demand(pod, reader)
    if names is not None:
        return Question(demand, _names(names))
    strangers = {facts.name: facts for facts in _nodes(nodes)}
    return Question(demand, tuple(strangers), strangers)


def read_pod_or_question(body: bytes, reader: PodReader) -> Question:
    """Read ExtenderArgs, or a Pod object for any node. Raise InputError for anything else."""
    values = _object(body)
    if "Pod" in values:
        return read_question(body, reader)
    return Question(_demand(values, reader))


def answer(scores: Iterable[Score]) -> bytes:
    """Return the scores as a HostPriorityList."""
    return f"[{','.join([score.answer for score in scores])}]".encode()


def _object(body: bytes) -> dict[str, Any]:
    # Parsing takes a time per value, in which nothing else is answered.
    if values_in(body) > MOST_VALUES:
        raise InputError(f"the body has more than {MOST_VALUES} values")
    try:
        values = parse_tenant_json(body)
    except ValueError as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"the body is not JSON: {reason[:200]}") from error
    if not isinstance(values, dict):
        raise InputError(f"the body must be a JSON object, not {type(values).__name__}")
    return values


def _demand(pod: Mapping[str, Any], reader: PodReader) -> PodDemand:
    spec = pod.get("spec")
    check_containers(spec if isinstance(spec, dict) else {})
    try:
        return reader.demand(pod)
    except InputError as error:
        raise InputError(str(error).splitlines()[0]) from error


def _names(names: object) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("NodeNames: must be a list of names")
    if len(names) > MOST_NODES:
        raise InputError(f"NodeNames: must be at most {MOST_NODES}")
    if any(len(name) > LONGEST_NAME for name in names):
        raise InputError(f"NodeNames: a name has more than {LONGEST_NAME} characters")
    return tuple(names)


def _nodes(nodes: object) -> Iterable[NodeFacts]:
    items = (nodes.get("items") or nodes.get("Items") or ()) if isinstance(nodes, dict) else None
    if not isinstance(items, list | tuple):
        raise InputError("neither NodeNames nor Nodes: there is nothing to score")
    if len(items) > MOST_NODES:
        raise InputError(f"Nodes: must be at most {MOST_NODES}")
    facts_of_nodes = [read_node(item) for item in items if isinstance(item, dict)]
    return [facts for facts in facts_of_nodes if facts is not None]
