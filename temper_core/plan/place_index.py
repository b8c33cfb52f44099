"""Find the rules for a thread among all the places of a steered plan."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from temper_core.plan.tenancy import NamesCount, where_names_count
from temper_core.profiles.matching import matches
from temper_core.records.steering import (
    NAME_PARTS,
    OPEN,
    SYSTEM,
    ScopeKind,
    SteeredPlace,
    SteeringRule,
)
from temper_core.records.threads import ThreadIdentity

MOST_REMEMBERED = 16_384
"""Cgroups in the cache. Its bound matters on a node that makes and removes cgroups all day."""


class Target(NamedTuple):
    """The layer of a thread, empty if it is not known yet, and its nice value, 0 for its own."""

    layer: str = ""
    nice: int = 0


class PlaceIndex:
    """Maps threads to the places of one plan, as the kernel side does by its table.

    The innermost cgroup with a place counts, and the first of several places at one cgroup. Names
    of pods and containers count only where the node's own tools make cgroups (``NamesCount``), and
    not inside another known pod. A process scope counts unless the cgroup's place outranks it. The
    longest of several names counts.
    """

    def __init__(self, places: Iterable[SteeredPlace]) -> None:
        self._paths: dict[str, SteeredPlace] = {}
        self._exact: dict[str, SteeredPlace] = {}
        self._pods: dict[str, SteeredPlace] = {}
        self._containers: dict[str, SteeredPlace] = {}
        self._processes: list[SteeredPlace] = []
        self._known: dict[str, SteeredPlace | None] = {}
        self._order: dict[int, int] = {}
        for number, place in enumerate(places):
            self._order[id(place)] = number
            self._enter(place)
        self._processes.sort(key=lambda place: -len(place.scope.text))

    def layer_of(self, thread: ThreadIdentity) -> str:
        """Return the name of the layer that *thread* belongs to."""
        return self.target_of(thread).layer

    def target_of(self, thread: ThreadIdentity) -> Target:
        """Return the layer that *thread* belongs to, and its nice value there."""
        if thread.is_kthread:
            return Target(SYSTEM)
        place = self.place_of(thread)
        rule = rule_for(place, thread) if place else None
        return Target(rule.layer, rule.nice) if rule else Target(OPEN)

    def place_of(self, thread: ThreadIdentity) -> SteeredPlace | None:
        """Return the place whose rules count for *thread*. ``None`` if it is in no place."""
        place = self.place_at(thread.cgroup)
        if place is None or not place.outranks_processes:
            for process_place in self._processes:
                if thread.process.startswith(process_place.scope.text):
                    return process_place
        return place

    def place_at(self, cgroup: str) -> SteeredPlace | None:
        """Return the innermost place of a cgroup's path, without process scopes."""
        path = cgroup.strip("/")
        try:
            return self._known[path]
        except KeyError:
            place = self._search(path)
        # Server threads call this too, so the cache may be cleared at any moment.
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[path] = place
        return place

    def _enter(self, place: SteeredPlace) -> None:
        scope = place.scope
        if scope.kind is ScopeKind.PROCESS:
            self._processes.append(place)
        elif scope.exact:
            self._exact.setdefault(scope.text, place)
        elif scope.kind is ScopeKind.PATH:
            self._paths.setdefault(scope.text, place)
        elif scope.kind is ScopeKind.POD:
            self._pods.setdefault(scope.text, place)
        else:
            self._containers.setdefault(scope.text, place)

    def _search(self, path: str) -> SteeredPlace | None:
        exact = self._exact.get(path)
        if exact is not None:
            return exact
        around: list[SteeredPlace] = []
        for inner, count in where_names_count(path):
            place = self._first_at(inner, around, count)
            if place is not None:
                around.append(place)
        return around[-1] if around else None

    def _first_at(
        self, path: str, around: Sequence[SteeredPlace], count: NamesCount
    ) -> SteeredPlace | None:
        name = path.rpartition("/")[2]
        candidates = [self._paths.get(path)]  # a path is unique: it cannot be made elsewhere
        pods = {outer.pod for outer in around if outer.pod}
        if count.pods and not pods:
            candidates += [self._pods.get(name), self._pods.get(name.rpartition("-")[2])]
        if count.containers:
            inside = [self._containers.get(part) for part in NAME_PARTS.split(name)]
            candidates += [outer for outer in inside if outer and pods <= {outer.pod}]
        places = [place for place in candidates if place is not None]
        return min(places, key=lambda place: self._order[id(place)], default=None)


def rule_for(place: SteeredPlace, thread: ThreadIdentity) -> SteeringRule | None:
    """Return the first rule of *place* that holds for *thread*."""
    for rule in place.rules:
        if rule.root_only and thread.uid != 0:
            continue
        if rule.until_seen and thread.behaviour is not None:
            continue
        if rule.match is None or matches(rule.match, thread):
            return rule
    return None
