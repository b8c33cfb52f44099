"""Thread groups: the pods that share one, and what each may get before cores are counted."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from temper_core.plan.addresses import AddressedPod
from temper_core.plan.capacity import MILLIS
from temper_core.profiles.conditions import GroupTarget, Part, own_conditions
from temper_core.records.plans import Note
from temper_core.records.profiles import LoadedProfile
from temper_core.records.thread_groups import ThreadGroup, Treatment
from temper_core.records.tiers import FENCING_TIERS, Tier

if TYPE_CHECKING:
    from fractions import Fraction

OWNING_TIERS = (Tier.CRITICAL, Tier.HIGH, Tier.NORMAL)
BY_NICE = (Treatment.LATENCY, Treatment.BOOST)
"""Treatments within the layer of the tier, by nice values that steering sets."""
IMPORTANCE = {treatment: rank for rank, treatment in enumerate(Treatment)}
LONGEST_NAME = 63


@frozen
class GroupRequest:
    """The request of one thread group in one tier. ``cores`` are whole, for exclusive groups.

    ``position`` is the group's index in its profile, which lists the most important group first.
    The treatment NORMAL means that it stays in the tier's layer, for any reason.
    """

    tier: Tier
    group: ThreadGroup
    name: str
    treatment: Treatment
    cores: int = 0
    position: int = 0

    @property
    def fraction(self) -> "int | Fraction":
        """The share of each pod's request that an exclusive group takes."""
        return _fraction(self.group)

    @property
    def has_layer(self) -> bool:
        """Whether the group requests its own layer."""
        return self.treatment is Treatment.EXCLUSIVE

    @property
    def importance(self) -> tuple[int, int, int, str]:
        """Sort key, the most important first."""
        return self.tier.rank, IMPORTANCE[self.treatment], self.position, self.name


@frozen(eq=False)
class TierPods:
    """The pods of one tier that run under one profile, or under none."""

    tier: Tier
    loaded: LoadedProfile | None
    members: tuple[AddressedPod, ...]
    group_requests: tuple[GroupRequest, ...] = ()
    is_steered: bool = False

    @property
    def profile(self) -> str:
        """The id of the profile. Empty without one."""
        return self.loaded.profile.id if self.loaded else ""

    @property
    def groups(self) -> tuple[ThreadGroup, ...]:
        """The thread groups of the profile, in the order in which they match."""
        return self.loaded.profile.thread_groups if self.loaded else ()

    def without(self, names: Container[str]) -> "TierPods":
        """Return these pods with the groups of *names* left in the layer of their tier."""
        reduced = tuple(
            evolve(request, treatment=Treatment.NORMAL) if request.name in names else request
            for request in self.group_requests
        )
        return evolve(self, group_requests=reduced)

    def parts(self, goals: Mapping[str, GroupTarget]) -> tuple[Part, ...]:
        """Return the groups as far as they can be matched, each with its target."""
        return tuple(
            self.part(request.group, goals[request.name]) for request in self.group_requests
        )

    def part(self, group: ThreadGroup, goal: GroupTarget) -> Part:
        """Return *group* as far as it can be matched: the engine alone matches only names."""
        matches = tuple(match for match in group.match if self.is_steered or match.is_static)
        return Part(matches, goal, takes_rest=not group.match)


def tier_pods_of(
    pods: Iterable[AddressedPod], *, is_steered: bool = False
) -> tuple[tuple[TierPods, ...], tuple[Note, ...]]:
    """Collect the pods by tier and profile, each with the requests of its groups.

    The most important tier comes first. The notes list requests that no node could serve.
    """
    all_tier_pods: list[TierPods] = []
    notes: list[Note] = []
    for tier_pods in _gathered(pods):
        group_requests, refusals = group_requests_of(evolve(tier_pods, is_steered=is_steered))
        all_tier_pods.append(
            evolve(tier_pods, group_requests=group_requests, is_steered=is_steered)
        )
        notes += refusals
    return tuple(all_tier_pods), tuple(notes)


def _gathered(pods: Iterable[AddressedPod]) -> tuple[TierPods, ...]:
    by_profile: defaultdict[tuple[int, str], list[AddressedPod]] = defaultdict(list)
    for located in pods:
        assignment = located.assignment
        profile = assignment.profile.profile.id if assignment.profile else ""
        by_profile[assignment.tier.rank, profile].append(located)
    return tuple(
        TierPods(members[0].assignment.tier, members[0].assignment.profile, tuple(members))
        for _, members in sorted(by_profile.items(), key=lambda item: item[0])
    )


def group_requests_of(tier_pods: TierPods) -> tuple[tuple[GroupRequest, ...], tuple[Note, ...]]:
    """Return the request of each group of *tier_pods*, with notes on what no node could serve."""
    group_requests: list[GroupRequest] = []
    notes: list[Note] = []
    for position, group in enumerate(tier_pods.groups):
        name = layer_name(tier_pods.profile, group.name, tier_pods.tier)
        treatment, refusals = _settled(tier_pods, position)
        cores = exclusive_cores(tier_pods, group) if treatment is Treatment.EXCLUSIVE else 0
        group_requests.append(GroupRequest(tier_pods.tier, group, name, treatment, cores, position))
        notes += [Note(code, name, why) for code, why in refusals]
    return tuple(group_requests), tuple(notes)


def layer_name(profile: str, group: str, tier: Tier) -> str:
    """Return ``profile.group.tier``, shortened if it exceeds the limit of all engines."""
    name = f"{profile}.{group}.{tier}"
    if len(name) <= LONGEST_NAME:
        return name
    from hashlib import sha256  # noqa: PLC0415 - 0.5 MB, and few names are that long

    digest = sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - len(digest) - 1]}-{digest}"


def exclusive_cores(tier_pods: TierPods, group: ThreadGroup) -> int:
    """Return the whole cores that the group needs: its share of all requests, rounded up once.

    A core counts as one CPU here, because its siblings stay idle.
    """
    requests = sum(member.pod.cpu_request_millis for member in tier_pods.members)
    return -(-requests * _fraction(group) // MILLIS)


Refusal = tuple[str, str]
Settled = tuple[Treatment, tuple[Refusal, ...]]


def _settled(tier_pods: TierPods, position: int) -> Settled:
    """Return the group's treatment, and a code and a message for each refusal."""
    group = tier_pods.groups[position]
    if group.treatment is Treatment.NORMAL:
        return Treatment.NORMAL, ()
    unseen = _unseen(tier_pods, position)
    if unseen and not any(match.is_static for match in group.match):
        return Treatment.NORMAL, unseen
    if group.treatment is Treatment.YIELD:
        return Treatment.YIELD, unseen
    treatment, refusals = _sized(tier_pods, group)
    if treatment in BY_NICE and not tier_pods.is_steered:
        why = f"{treatment} needs steering; the threads stay in the layer of their tier"
        return Treatment.NORMAL, (*unseen, *refusals, ("group_needs_steering", why))
    return treatment, (*unseen, *refusals)


def _unseen(tier_pods: TierPods, position: int) -> tuple[Refusal, ...]:
    """Return refusals for matches that the engine, which matches only names, cannot see."""
    if tier_pods.is_steered:
        return ()
    group = tier_pods.groups[position]
    blind = [earlier.name for earlier in tier_pods.groups[:position] if not _is_static(earlier)]
    if not group.match and blind:
        why = (
            f"takes the rest after {', '.join(blind)}, which needs steering to match; "
            "the threads stay in the layer of their tier"
        )
        return (("group_needs_steering", why),)
    if _is_static(group):
        return ()
    keys = ", ".join(dict.fromkeys(key for match in group.match for key in match.steered_keys))
    why = f"a match by {keys} needs steering; until then those threads stay "
    return (("group_needs_steering", f"{why}in the layer of their tier"),)


def _sized(tier_pods: TierPods, group: ThreadGroup) -> Settled:
    refusals: tuple[Refusal, ...] = ()
    if why := _why_folded(tier_pods, group):
        return Treatment.NORMAL, (("folded", why),)
    if group.treatment is Treatment.EXCLUSIVE:
        if exclusive_cores(tier_pods, group):
            return Treatment.EXCLUSIVE, ()
        why = "its pods request no CPU, by which exclusive cores are sized; treated as latency"
        refusals = (("demoted", why),)
    if group.treatment is Treatment.BOOST:
        return Treatment.BOOST, refusals
    if group.match:
        return Treatment.LATENCY, refusals
    why = "latency for all threads of a pod is its tier's work; they stay in that layer"
    return Treatment.NORMAL, (*refusals, ("folded", why))


def _why_folded(tier_pods: TierPods, group: ThreadGroup) -> str:
    """Return why the group's threads stay with the rest of their pod. Empty if they need not."""
    tier = tier_pods.tier
    if tier not in OWNING_TIERS:
        return f"tier {tier} owns no CPUs; the threads stay with the rest of their pod"
    if _is_shadowed(tier_pods, group):
        return "every thread that it names is taken by an earlier group"
    if group.treatment is Treatment.EXCLUSIVE and tier not in FENCING_TIERS:
        return f"tier {tier} fences no CPUs; the threads stay in the layer of their tier"
    return ""


def _is_shadowed(tier_pods: TierPods, group: ThreadGroup) -> bool:
    position = tier_pods.groups.index(group)
    parts = [
        tier_pods.part(earlier, GroupTarget.TIER) for earlier in tier_pods.groups[: position + 1]
    ]
    return not own_conditions(parts, position)


def _is_static(group: ThreadGroup) -> bool:
    return all(match.is_static for match in group.match)


def _fraction(group: ThreadGroup) -> "int | Fraction":
    if group.cpu_fraction is None:
        return 1
    from fractions import Fraction  # noqa: PLC0415 - 0.4 MB, and few profiles have fractions

    # The shortest decimal that reads back as this float is the profile's number.
    return Fraction(str(group.cpu_fraction))
