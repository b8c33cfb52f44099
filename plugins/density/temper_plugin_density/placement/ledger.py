"""The known state of the cluster: every node, with the CPU requests of its bound pods."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

from attrs import define, field

from temper_plugin_density.placement.asking import BoundPod, PodDemand
from temper_plugin_density.placement.facts import NodeFacts
from temper_plugin_density.placement.scoring import (
    OLD_AFTER_S,
    Bound,
    Score,
    is_recent,
    score,
    unknown,
)

MOST_CACHED = 40_000
"""Scores that all nodes cache together, of at most 700 bytes each."""
MOST_KINDS = 64
"""Sizes of pods whose scores are cached."""

NOBODY: Mapping[str, NodeFacts] = {}

_Kind = tuple[str, int, bool]
_Known = tuple[Score, float]
"""A score, and the time until it is valid unless the node changes before."""


@define
class _Place:
    """One node: its facts, its bound pods, and the scores cached since either changed.

    ``facts`` is None while only the pod watch has reported the node.
    """

    facts: NodeFacts | None = None
    pods: dict[str, PodDemand] = field(factory=dict)
    scores: dict[_Kind, _Known] = field(factory=dict)
    _bound: Bound | None = None

    @property
    def bound(self) -> Bound:
        """The total requests of the pods that are bound here."""
        if self._bound is None:
            self._bound = Bound.of(self.pods.values())
        return self._bound

    def changed(self) -> None:
        """Drop the cached sums and scores."""
        self._bound = None
        self.scores.clear()

    def score(self, demand: PodDemand, facts: NodeFacts, kind: _Kind, now: float) -> Score:
        """Score the node by its *facts*. A score of an unchanged node comes from the cache."""
        cached = self.scores.get(kind)
        if cached is not None and now <= cached[1]:
            return cached[0]
        fresh = score(demand, facts, self.bound, now)
        self.scores[kind] = (fresh, _holds_until(facts, now))
        return fresh


class Ledger:
    """Nodes and bound pods, updated by two watches. All calls come from one thread.

    The watches are independent: pods of a node that is not known yet are kept.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._places: defaultdict[str, _Place] = defaultdict(_Place)
        self._kinds: deque[_Kind] = deque()
        self._node_of: dict[str, str] = {}

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes that the node watch has reported."""
        return tuple(sorted(name for name, place in self._places.items() if place.facts))

    @property
    def pods(self) -> int:
        """The number of known bound pods."""
        return len(self._node_of)

    def facts(self, name: str) -> NodeFacts | None:
        """Return a node's facts. None for an unknown node."""
        return self._places[name].facts if name in self._places else None

    def replace_nodes(self, nodes: Iterable[NodeFacts]) -> None:
        """Replace all nodes."""
        facts_by_name = {facts.name: facts for facts in nodes}
        for name in {*self._places} - {*facts_by_name}:
            self.drop_node(name)
        for facts in facts_by_name.values():
            self.put_node(facts)

    def put_node(self, facts: NodeFacts) -> None:
        """Add or update a node."""
        place = self._places[facts.name]
        if place.facts != facts:  # most updates of a node do not affect its facts
            place.facts = facts
            place.changed()

    def drop_node(self, name: str) -> None:
        """Remove a node."""
        place = self._places[name]
        place.facts = None
        place.changed()
        self._tidy(name)

    def replace_pods(self, pods: Iterable[BoundPod]) -> None:
        """Replace all bound pods."""
        pods_by_uid = {pod.uid: pod for pod in pods}
        for uid in {*self._node_of} - {*pods_by_uid}:
            self.drop_pod(uid)
        for pod in pods_by_uid.values():
            self.put_pod(pod)

    def put_pod(self, pod: BoundPod) -> None:
        """Add or update a bound pod."""
        if self._node_of.get(pod.uid, pod.node) != pod.node:
            self.drop_pod(pod.uid)
        self._node_of[pod.uid] = pod.node
        place = self._places[pod.node]
        if place.pods.get(pod.uid) != pod.demand:
            place.pods[pod.uid] = pod.demand
            place.changed()

    def drop_pod(self, uid: str) -> None:
        """Remove a pod that was deleted or has terminated."""
        name = self._node_of.pop(uid, None)
        if name is not None:
            place = self._places[name]
            place.pods.pop(uid, None)
            place.changed()
            self._tidy(name)

    def find_pod(self, key: str) -> tuple[str, PodDemand] | None:
        """Return the node of the bound pod with that namespace/name, and its request."""
        for name, place in self._places.items():
            for demand in place.pods.values():
                if demand.pod == key:
                    return name, demand
        return None

    def scores(
        self,
        demand: PodDemand,
        names: Iterable[str],
        strangers: Mapping[str, NodeFacts] = NOBODY,
    ) -> tuple[Score, ...]:
        """Score nodes. *strangers* are facts of nodes that the watch has not reported yet."""
        now, kind = self._clock(), (demand.tier.value, demand.millis, demand.is_system)
        self._admit(kind)
        places, scored = self._places, []
        for name in names:
            place = places.get(name)
            if place is not None and place.facts is not None:
                scored.append(place.score(demand, place.facts, kind, now))
            elif name in strangers:
                there = place.bound if place else Bound()
                scored.append(score(demand, strangers[name], there, now))
            else:
                scored.append(unknown(name))
        return tuple(scored)

    def _admit(self, kind: _Kind) -> None:
        """Make room for the scores of one more kind of pod. At least two kinds are kept."""
        if kind in self._kinds:
            return
        most = min(MOST_KINDS, max(2, MOST_CACHED // max(1, len(self._places))))
        while len(self._kinds) >= most:
            dropped = self._kinds.popleft()
            for place in self._places.values():
                place.scores.pop(dropped, None)
        self._kinds.append(kind)

    def _tidy(self, name: str) -> None:
        place = self._places[name]
        if place.facts is None and not place.pods:
            del self._places[name]


def _holds_until(facts: NodeFacts, now: float) -> float:
    """Return the time until which a score of these facts is valid: until they are too old."""
    if facts.told_at is None:
        return float("inf")
    if is_recent(facts.told_at, now):
        return facts.told_at + OLD_AFTER_S
    return float("inf") if facts.told_at < now else now
