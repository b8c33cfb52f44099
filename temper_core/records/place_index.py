"""Which rules count for a thread, among all the places of a steered plan."""

from collections.abc import Iterable, Iterator, Sequence

from temper_core.records.matching import ThreadIdentity, matches
from temper_core.records.steering import (
    NAME_PARTS,
    OPEN,
    SYSTEM,
    ScopeKind,
    SteeredPlace,
    SteeringRule,
)

MOST_REMEMBERED = 16_384
"""Cgroups whose place is kept; a node that makes and removes them all day has ever new ones."""
SESSIONS = "user.slice"
"""Below it, systemd lets users make cgroups of any name."""


class PlaceIndex:
    """Judges threads by the places of one plan, as the kernel side does by its table.

    The innermost cgroup that has a place counts; of several at one cgroup the first. Names of
    pods count only outside of all pods, those of containers not inside of another's pod, and
    neither in users' sessions. A process scope counts where that place does not outrank it; of
    several the longest name.
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
        """Return the name of the layer into which *thread* belongs."""
        if thread.is_kthread:
            return SYSTEM
        place = self.place_of(thread)
        rule = rule_for(place, thread) if place else None
        return rule.layer if rule else OPEN

    def place_of(self, thread: ThreadIdentity) -> SteeredPlace | None:
        """Return the place whose rules count for *thread*; ``None`` where it is in none."""
        place = self.place_at(thread.cgroup)
        if place is None or not place.outranks_processes:
            for named in self._processes:
                if thread.process.startswith(named.scope.text):
                    return named
        return place

    def place_at(self, cgroup: str) -> SteeredPlace | None:
        """Return the innermost place of a cgroup's path, process scopes left out."""
        path = cgroup.strip("/")
        if path not in self._known:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[path] = self._search(path)
        return self._known[path]

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
        for inner in _from_the_root(path):
            place = self._first_at(inner, around)
            if place is not None:
                around.append(place)
        return around[-1] if around else None

    def _first_at(self, path: str, around: Sequence[SteeredPlace]) -> SteeredPlace | None:
        name = path.rpartition("/")[2]
        named: list[SteeredPlace | None] = []
        # Who may make cgroups inside a pod could name one like a better pod, or its container;
        # however the pod around was found. Paths are safe: nobody can make one somewhere else.
        pods = {each.pod for each in around if each.pod}
        if not pods:
            named += [self._pods.get(name), self._pods.get(name.rpartition("-")[2])]
        inside = [self._containers.get(part) for part in NAME_PARTS.split(name)]
        named += [each for each in inside if each and pods <= {each.pod}]
        found = [self._paths.get(path), *([] if _is_in_a_session(path) else named)]
        places = [place for place in found if place is not None]
        return min(places, key=lambda place: self._order[id(place)], default=None)


def _is_in_a_session(path: str) -> bool:
    return path.partition("/")[0] == SESSIONS


def _from_the_root(path: str) -> Iterator[str]:
    yield ""
    if path:
        parts = path.split("/")
        yield from ("/".join(parts[: depth + 1]) for depth in range(len(parts)))


def rule_for(place: SteeredPlace, thread: ThreadIdentity) -> SteeringRule | None:
    """Return the first rule of *place* that holds for *thread*."""
    for rule in place.rules:
        if rule.root_only and thread.uid != 0:
            continue
        if rule.match is None or matches(rule.match, thread):
            return rule
    return None
