"""Build the places of a steered plan, by which hints are assigned to threads."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from temper_core.plan.addresses import Address, AddressedPod, AddressForm
from temper_core.plan.blocks import system_names
from temper_core.plan.groups import TierPods
from temper_core.profiles.conditions import GroupTarget
from temper_core.records.steering import (
    OPEN,
    SYSTEM,
    Scope,
    ScopeKind,
    SteeredPlace,
    SteeringRule,
)
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch, Treatment
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
NICE = {Treatment.BOOST: -5, Treatment.LATENCY: -10}
"""Nice values within the layer of a tier: 3 and 9.3 times the weight of a thread at 0
(``sched_prio_to_weight`` in kernel/sched/core.c). In Open they would displace other pods' threads.
"""
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
"""The kubelet's directories of pods by QoS class, and the tier of pods without a PriorityClass."""


@frozen
class GroupPlacement:
    """The layers of a plan, and the target of each group's threads."""

    layers: Container[str]
    goals: Mapping[str, GroupTarget]

    def of_tier(self, tier: Tier) -> str:
        """Return the layer of *tier*, or Open if it has none."""
        return tier.value if tier.value in self.layers else OPEN

    def of_group(self, name: str, tier: Tier) -> str:
        """Return the layer of the group of that name."""
        goal = self.goals[name]
        if goal is GroupTarget.TIER:
            return self.of_tier(tier)
        return name if goal is GroupTarget.OWN else OPEN


def places_of(
    system: Iterable[AddressedPod],
    all_tier_pods: Iterable[TierPods],
    placement: GroupPlacement,
    settings: PlanSettings,
) -> tuple[SteeredPlace, ...]:
    """Return the places of a node, each scope once. The first of two claims to a scope counts.

    Pods of more important tiers come first, as their layers do.
    """
    node = _Node(settings)
    by_scope: dict[Scope, SteeredPlace] = {}
    for place in (
        *node.kept(),
        *(place for located in system for place in _pod_places(located, located.whole, TO_SYSTEM)),
        *(
            node.settled(place)
            for tier_pods in all_tier_pods
            for place in _tier_places(tier_pods, placement)
        ),
        *node.processes(),
        *_unknown_pods(placement),
    ):
        by_scope.setdefault(place.scope, place)
    return tuple(by_scope.values())


@frozen
class _Node:
    """The node's own places, and their effect on the places of pods."""

    settings: PlanSettings

    def kept(self) -> Iterator[SteeredPlace]:
        """Yield the cgroups that belong to the system layer."""
        for path in self._kept_paths():
            yield SteeredPlace(Scope(ScopeKind.PATH, path), TO_SYSTEM)

    def processes(self) -> Iterator[SteeredPlace]:
        """Yield the cgroups in which the node's own processes match by name."""
        for prefix in self.settings.system_process_cgroups:
            path = prefix.strip("/")
            rules = (*self._rules(system_names(self.settings)), *TO_OPEN)
            yield SteeredPlace(Scope(ScopeKind.PATH, path, exact=not path), rules)

    def settled(self, place: SteeredPlace) -> SteeredPlace:
        """Return a pod's place as the system layer's own matchers leave it.

        Those come before Open: a thread that matches one of them cannot be sent to Open.
        """
        scope = place.scope
        if scope.kind is ScopeKind.PATH and self._is_kept(scope.text):
            return SteeredPlace(scope, TO_SYSTEM, place.pod)
        return SteeredPlace(scope, (*self._rules(self._names_in(scope)), *place.rules), place.pod)

    def _is_kept(self, path: str) -> bool:
        return any(f"{path}/".startswith(f"{prefix}/") for prefix in self._kept_paths())

    def _names_in(self, scope: Scope) -> Iterable[str]:
        """Return the names of the node's processes that count in a pod's scope."""
        names, text = system_names(self.settings), scope.text
        if scope.kind is ScopeKind.PROCESS:
            return (name for name in names if name.startswith(text) or text.startswith(name))
        prefixes = tuple(self.settings.system_process_cgroups)
        return names if scope.kind is ScopeKind.PATH and f"{text}/".startswith(prefixes) else ()

    def _kept_paths(self) -> Iterator[str]:
        paths = (path.strip("/") for path in self.settings.system_cgroups)
        return (path for path in paths if path)

    def _rules(self, names: Iterable[str]) -> Iterator[SteeringRule]:
        for name in names:
            yield SteeringRule(SYSTEM, ThreadMatch(process=name), root_only=True)


def _tier_places(tier_pods: TierPods, placement: GroupPlacement) -> Iterator[SteeredPlace]:
    tier = (SteeringRule(placement.of_tier(tier_pods.tier)),)
    groups = _group_rules(tier_pods, placement)
    for member in tier_pods.members:
        if member.inside == member.whole:
            yield from _pod_places(member, member.whole, groups)
        else:
            # Containers that the profile does not apply to are in the pod's own place.
            yield from _pod_places(member, member.whole, tier)
            yield from _pod_places(member, member.inside, groups)


def _pod_places(
    located: AddressedPod, addresses: Iterable[Address], rules: Rules
) -> Iterator[SteeredPlace]:
    for address in addresses:
        scope = Scope(SCOPES[address.form], address.text)
        yield SteeredPlace(scope, rules, located.pod.key)


def _group_rules(tier_pods: TierPods, placement: GroupPlacement) -> Rules:
    """Return the profile's groups in their order. The last rule takes all other threads.

    A thread does not yield before its behaviour is known if it may belong to an earlier group.
    """
    rules: list[SteeringRule] = []
    tier = placement.of_tier(tier_pods.tier)
    rest = SteeringRule(tier)
    undecided: list[SteeringRule] = []
    for request in tier_pods.group_requests:
        layer = placement.of_group(request.name, tier_pods.tier)
        nice = NICE.get(request.treatment, 0) if layer == request.tier.value else 0
        if request.treatment is Treatment.YIELD:
            rules += undecided
            undecided.clear()
        if request.group.match:
            rules += [SteeringRule(layer, match, nice=nice) for match in request.group.match]
            undecided += _until_seen(tier, request.group)
        else:
            rest = SteeringRule(layer, nice=nice)
    return (*_trimmed(rules, rest), rest)


def _until_seen(tier: str, group: ThreadGroup) -> Iterator[SteeringRule]:
    for match in group.match:
        if match.behaviour is not None:
            yield SteeringRule(tier, evolve(match, behaviour=None), until_seen=True)


def _trimmed(rules: Sequence[SteeringRule], rest: SteeringRule) -> Sequence[SteeringRule]:
    """Drop the last rules that do with their threads what *rest*, the final rule, does anyway."""
    count = len(rules)
    while count and (rules[count - 1].layer, rules[count - 1].nice) == (rest.layer, rest.nice):
        count -= 1
    return rules[:count]


def _unknown_pods(placement: GroupPlacement) -> Iterator[SteeredPlace]:
    for path, tier in UNKNOWN_PODS:
        rules = (SteeringRule(placement.of_tier(tier)),)
        yield SteeredPlace(Scope(ScopeKind.PATH, path), rules, is_of_pods=True)
