"""Which threads belong where, place by place: what hints are given by."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from temper_core.plan.addresses import Address, AddressedPod, AddressForm
from temper_core.plan.blocks import system_names
from temper_core.plan.groups import TierPods
from temper_core.profiles.conditions import GroupTarget
from temper_core.records.profiles import ThreadMatch
from temper_core.records.steering import (
    OPEN,
    SYSTEM,
    Scope,
    ScopeKind,
    SteeredPlace,
    SteeringRule,
)
from temper_core.records.tiers import Tier
from temper_core.settings.tiers import PlanSettings

Rules = tuple[SteeringRule, ...]

SCOPES = {
    AddressForm.PATH: ScopeKind.PATH,
    AddressForm.SYSTEMD: ScopeKind.POD,
    AddressForm.CGROUPFS: ScopeKind.POD,
    AddressForm.CONTAINER: ScopeKind.CONTAINER,
    AddressForm.PROCESS: ScopeKind.PROCESS,
}
TO_SYSTEM: Rules = (SteeringRule(SYSTEM),)
TO_OPEN: Rules = (SteeringRule(OPEN),)
UNKNOWN_PODS = (
    ("kubepods.slice", Tier.NORMAL),
    ("kubepods.slice/kubepods-burstable.slice", Tier.NORMAL),
    ("kubepods.slice/kubepods-besteffort.slice", Tier.BACKGROUND),
    ("kubepods", Tier.NORMAL),
    ("kubepods/burstable", Tier.NORMAL),
    ("kubepods/besteffort", Tier.BACKGROUND),
)
"""Where the kubelet puts pods by their QoS class, and the tier of those without a PriorityClass."""


@frozen
class GroupPlacement:
    """Which layers there are, and where the threads of each group go."""

    layers: Container[str]
    goals: Mapping[str, GroupTarget]

    def of_tier(self, tier: Tier) -> str:
        """Return the layer of *tier*, or Open where it has none."""
        return tier.value if tier.value in self.layers else OPEN

    def of_group(self, name: str, tier: Tier) -> str:
        """Return the layer of the group of that name."""
        goal = self.goals[name]
        if goal is GroupTarget.TIER:
            return self.of_tier(tier)
        return name if goal is GroupTarget.OWN else OPEN


def places_of(
    system: Iterable[AddressedPod],
    crews: Iterable[TierPods],
    homes: GroupPlacement,
    settings: PlanSettings,
) -> tuple[SteeredPlace, ...]:
    """Return the places of a node, each scope once. Of two that claim one the first has it.

    Pods of more important tiers come first, as their layers do.
    """
    node = _Node(settings)
    named: dict[Scope, SteeredPlace] = {}
    for place in (
        *node.kept(),
        *(place for located in system for place in _pod_places(located, located.whole, TO_SYSTEM)),
        *(node.settled(place) for crew in crews for place in _crew_places(crew, homes)),
        *node.processes(),
        *_unknown_pods(homes),
    ):
        named.setdefault(place.scope, place)
    return tuple(named.values())


@frozen
class _Node:
    """The node's own places, and what they have to say about those of pods."""

    settings: PlanSettings

    def kept(self) -> Iterator[SteeredPlace]:
        """Yield the cgroups that the system layer keeps served."""
        for path in self._kept_paths():
            yield SteeredPlace(Scope(ScopeKind.PATH, path), TO_SYSTEM)

    def processes(self) -> Iterator[SteeredPlace]:
        """Yield the cgroups in which processes of the node's own count by their names."""
        for prefix in self.settings.system_process_cgroups:
            path = prefix.strip("/")
            rules = (*self._rules(system_names(self.settings)), *TO_OPEN)
            yield SteeredPlace(Scope(ScopeKind.PATH, path, exact=not path), rules)

    def settled(self, place: SteeredPlace) -> SteeredPlace:
        """Return a pod's place as the system layer's own matchers leave it.

        They come before Open: a thread for which one of them holds cannot be sent there.
        """
        scope = place.scope
        if scope.kind is ScopeKind.PATH and self._is_kept(scope.text):
            return SteeredPlace(scope, TO_SYSTEM, place.pod)
        return SteeredPlace(scope, (*self._rules(self._names_in(scope)), *place.rules), place.pod)

    def _is_kept(self, path: str) -> bool:
        return any(f"{path}/".startswith(f"{kept}/") for kept in self._kept_paths())

    def _names_in(self, scope: Scope) -> Iterable[str]:
        """Return which names of the node's processes count in a pod's scope."""
        names, text = system_names(self.settings), scope.text
        if scope.kind is ScopeKind.PROCESS:
            return (each for each in names if each.startswith(text) or text.startswith(each))
        where = tuple(self.settings.system_process_cgroups)
        return names if scope.kind is ScopeKind.PATH and f"{text}/".startswith(where) else ()

    def _kept_paths(self) -> Iterator[str]:
        paths = (path.strip("/") for path in self.settings.system_cgroups)
        return (path for path in paths if path)

    def _rules(self, names: Iterable[str]) -> Iterator[SteeringRule]:
        for name in names:
            yield SteeringRule(SYSTEM, ThreadMatch(process=name), root_only=True)


def _crew_places(crew: TierPods, homes: GroupPlacement) -> Iterator[SteeredPlace]:
    tier = (SteeringRule(homes.of_tier(crew.tier)),)
    groups = _group_rules(crew, homes)
    for member in crew.members:
        if member.inside == member.whole:
            yield from _pod_places(member, member.whole, groups)
        else:
            # Containers that the profile is not about are in the pod's own place.
            yield from _pod_places(member, member.whole, tier)
            yield from _pod_places(member, member.inside, groups)


def _pod_places(
    located: AddressedPod, addresses: Iterable[Address], rules: Rules
) -> Iterator[SteeredPlace]:
    for address in addresses:
        scope = Scope(SCOPES[address.form], address.text)
        yield SteeredPlace(scope, rules, located.pod.key)


def _group_rules(crew: TierPods, homes: GroupPlacement) -> Rules:
    """Return the profile's groups in their order. The last rule takes what is left."""
    rules: list[SteeringRule] = []
    rest = homes.of_tier(crew.tier)
    for wish in crew.wishes:
        layer = homes.of_group(wish.name, crew.tier)
        if wish.group.match:
            rules += [SteeringRule(layer, match) for match in wish.group.match]
        else:
            rest = layer
    return (*_trimmed(rules, rest), SteeringRule(rest))


def _trimmed(rules: Sequence[SteeringRule], rest: str) -> Sequence[SteeringRule]:
    """Leave out the last rules that say no more than that what is left goes to *rest*."""
    count = len(rules)
    while count and rules[count - 1].layer == rest:
        count -= 1
    return rules[:count]


def _unknown_pods(homes: GroupPlacement) -> Iterator[SteeredPlace]:
    for path, tier in UNKNOWN_PODS:
        rules = (SteeringRule(homes.of_tier(tier)),)
        yield SteeredPlace(Scope(ScopeKind.PATH, path), rules, is_of_pods=True)
