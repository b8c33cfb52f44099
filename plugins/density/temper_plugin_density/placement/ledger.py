"""What is known of the cluster: every node, and what the pods that are bound to it ask for."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from attrs import define, field

from temper_plugin_density.placement.asking import BoundPod, PodWish
from temper_plugin_density.placement.facts import NodeFacts
from temper_plugin_density.placement.scoring import (
    OLD_AFTER_S,
    Bound,
    Score,
    is_recent,
    score,
    unknown,
)

MOST_REMEMBERED = 64
"""Sizes of pods whose score a node remembers until something changes there."""

NOBODY: Mapping[str, NodeFacts] = {}

_Kind = tuple[str, int, bool]
_Known = tuple[Score, float]
"""A score, and until when it holds if nothing changes on the node before."""


@define
class _Place:
    """One node: what it said, what is bound to it, and its scores since either changed.

    Without ``facts`` no watch has told of it, though one has told of pods that are bound to it.
    """

    facts: NodeFacts | None = None
    pods: dict[str, PodWish] = field(factory=dict)
    scores: dict[_Kind, _Known] = field(factory=dict)
    _bound: Bound | None = None

    @property
    def bound(self) -> Bound:
        """What the pods that are bound here ask for in all."""
        if self._bound is None:
            self._bound = Bound.of(self.pods.values())
        return self._bound

    def changed(self) -> None:
        """Forget what was reckoned."""
        self._bound = None
        self.scores.clear()

    def score(self, wish: PodWish, facts: NodeFacts, kind: _Kind, now: float) -> Score:
        """Score the node by its *facts*, or remember that nothing changed since."""
        known = self.scores.get(kind)
        if known is not None and now <= known[1]:
            return known[0]
        if len(self.scores) >= MOST_REMEMBERED:
            self.scores.clear()
        found = score(wish, facts, self.bound, now)
        self.scores[kind] = (found, _holds_until(facts, now))
        return found


class Ledger:
    """Kept up to date by two watches, and asked for scores, all on one thread.

    The watches know nothing of each other: pods of a node that is not known yet are kept.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._places: defaultdict[str, _Place] = defaultdict(_Place)
        self._node_of: dict[str, str] = {}

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes that the API server has told of."""
        return tuple(sorted(name for name, place in self._places.items() if place.facts))

    @property
    def pods(self) -> int:
        """How many bound pods are known."""
        return len(self._node_of)

    def facts(self, name: str) -> NodeFacts | None:
        """Return what a node said; None for one that is not known."""
        return self._places[name].facts if name in self._places else None

    def replace_nodes(self, nodes: Iterable[NodeFacts]) -> None:
        """Know that these are all nodes there are."""
        given = {each.name: each for each in nodes}
        for name in {*self._places} - {*given}:
            self.drop_node(name)
        for each in given.values():
            self.put_node(each)

    def put_node(self, facts: NodeFacts) -> None:
        """Know a node, or that it changed."""
        place = self._places[facts.name]
        if place.facts != facts:  # most of what a node says of itself moves no score
            place.facts = facts
            place.changed()

    def drop_node(self, name: str) -> None:
        """Know that a node is gone."""
        place = self._places[name]
        place.facts = None
        place.changed()
        self._tidy(name)

    def replace_pods(self, pods: Iterable[BoundPod]) -> None:
        """Know that these are all bound pods there are."""
        given = {each.uid: each for each in pods}
        for uid in {*self._node_of} - {*given}:
            self.drop_pod(uid)
        for each in given.values():
            self.put_pod(each)

    def put_pod(self, pod: BoundPod) -> None:
        """Know a bound pod, or that it changed."""
        if self._node_of.get(pod.uid, pod.node) != pod.node:
            self.drop_pod(pod.uid)
        self._node_of[pod.uid] = pod.node
        place = self._places[pod.node]
        if place.pods.get(pod.uid) != pod.wish:
            place.pods[pod.uid] = pod.wish
            place.changed()

    def drop_pod(self, uid: str) -> None:
        """Know that a pod is gone, or asks for nothing any more."""
        name = self._node_of.pop(uid, None)
        if name is not None:
            place = self._places[name]
            place.pods.pop(uid, None)
            place.changed()
            self._tidy(name)

    def find_pod(self, key: str) -> tuple[str, PodWish] | None:
        """Return where the pod of that namespace/name is bound, and what it asks for."""
        for name, place in self._places.items():
            for wish in place.pods.values():
                if wish.pod == key:
                    return name, wish
        return None

    def scores(
        self,
        wish: PodWish,
        names: Iterable[str],
        strangers: Mapping[str, NodeFacts] = NOBODY,
    ) -> tuple[Score, ...]:
        """Score nodes. *strangers* are what the asker knows of those that no watch told of."""
        now, kind = self._clock(), (wish.tier.value, wish.millis, wish.is_system)
        places, found = self._places, []
        for name in names:
            place = places.get(name)
            if place is not None and place.facts is not None:
                found.append(place.score(wish, place.facts, kind, now))
            elif name in strangers:
                there = place.bound if place else Bound()
                found.append(score(wish, strangers[name], there, now))
            else:
                found.append(unknown(name))
        return tuple(found)

    def _tidy(self, name: str) -> None:
        place = self._places[name]
        if place.facts is None and not place.pods:
            del self._places[name]


def _holds_until(facts: NodeFacts, now: float) -> float:
    """Return until when a score of these facts holds by itself: until they are too old."""
    if facts.told_at is None:
        return float("inf")
    if is_recent(facts.told_at, now):
        return facts.told_at + OLD_AFTER_S
    return float("inf") if facts.told_at < now else now
