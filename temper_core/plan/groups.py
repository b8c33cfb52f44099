"""Thread groups: the pods that share one, and what each may get before cores are counted."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from temper_core.plan.addresses import AddressedPod
from temper_core.plan.capacity import MILLIS
from temper_core.profiles.conditions import GroupTarget, Part, own_conditions
from temper_core.records.plans import Note
from temper_core.records.profiles import LoadedProfile, ThreadGroup, Treatment
from temper_core.records.tiers import Tier

if TYPE_CHECKING:
    from fractions import Fraction

OWNING_TIERS = (Tier.CRITICAL, Tier.HIGH, Tier.NORMAL)
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
        return self.treatment in (Treatment.EXCLUSIVE, Treatment.LATENCY)

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
    wishes: tuple[GroupRequest, ...] = ()
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
        """Return the crew with the groups of *names* left in the layer of their tier."""
        reduced = tuple(
            evolve(wish, treatment=Treatment.NORMAL) if wish.name in names else wish
            for wish in self.wishes
        )
        return evolve(self, wishes=reduced)

    def parts(self, goals: Mapping[str, GroupTarget]) -> tuple[Part, ...]:
        """Return the groups as far as they can be matched, each with its target."""
        return tuple(self.part(wish.group, goals[wish.name]) for wish in self.wishes)

    def part(self, group: ThreadGroup, goal: GroupTarget) -> Part:
        """Return *group* as far as it can be matched: the engine alone matches only names."""
        matches = tuple(match for match in group.match if self.is_steered or match.is_static)
        return Part(matches, goal, takes_rest=not group.match)


def crews_of(
    pods: Iterable[AddressedPod], *, is_steered: bool = False
) -> tuple[tuple[TierPods, ...], tuple[Note, ...]]:
    """Collect the pods by tier and profile, each with the requests of its groups.

    The most important tier comes first. The notes list requests that no node could serve.
    """
    crews: list[TierPods] = []
    notes: list[Note] = []
    for crew in _gathered(pods):
        wishes, refusals = wishes_of(evolve(crew, is_steered=is_steered))
        crews.append(evolve(crew, wishes=wishes, is_steered=is_steered))
        notes += refusals
    return tuple(crews), tuple(notes)


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


def wishes_of(crew: TierPods) -> tuple[tuple[GroupRequest, ...], tuple[Note, ...]]:
    """Return the request of each group of *crew*, with notes on what no node could serve."""
    wishes: list[GroupRequest] = []
    notes: list[Note] = []
    for position, group in enumerate(crew.groups):
        name = layer_name(crew.profile, group.name, crew.tier)
        treatment, refusals = _settled(crew, position)
        cores = exclusive_cores(crew, group) if treatment is Treatment.EXCLUSIVE else 0
        wishes.append(GroupRequest(crew.tier, group, name, treatment, cores, position))
        notes += [Note(code, name, why) for code, why in refusals]
    return tuple(wishes), tuple(notes)


def layer_name(profile: str, group: str, tier: Tier) -> str:
    """Return ``profile.group.tier``, shortened if it exceeds the limit of all engines."""
    name = f"{profile}.{group}.{tier}"
    if len(name) <= LONGEST_NAME:
        return name
    digest = sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - len(digest) - 1]}-{digest}"


def exclusive_cores(crew: TierPods, group: ThreadGroup) -> int:
    """Return the whole cores that the group needs: its share of all requests, rounded up once.

    A core counts as one CPU here, because its siblings stay idle.
    """
    requests = sum(member.pod.cpu_request_millis for member in crew.members)
    return -(-requests * _fraction(group) // MILLIS)


Refusal = tuple[str, str]
Settled = tuple[Treatment, tuple[Refusal, ...]]


def _settled(crew: TierPods, position: int) -> Settled:
    """Return the group's treatment, and a code and a message for each refusal."""
    group = crew.groups[position]
    if group.treatment is Treatment.NORMAL:
        return Treatment.NORMAL, ()
    if group.treatment is Treatment.BOOST:
        return Treatment.NORMAL, (_no_boost(crew),)
    unseen = _unseen(crew, position)
    if unseen and not any(match.is_static for match in group.match):
        return Treatment.NORMAL, unseen
    if group.treatment is Treatment.YIELD:
        return Treatment.YIELD, unseen
    treatment, refusals = _sized(crew, group)
    return treatment, (*unseen, *refusals)


def _no_boost(crew: TierPods) -> Refusal:
    if crew.is_steered:
        why = "boost: the engine has no weights within a layer"
        return "folded", f"{why}; the threads stay in the layer of their tier"
    why = "boost needs steering; the threads stay in the layer of their tier"
    return "group_needs_steering", why


def _unseen(crew: TierPods, position: int) -> tuple[Refusal, ...]:
    """Return refusals for matches that the engine, which matches only names, cannot see."""
    if crew.is_steered:
        return ()
    group = crew.groups[position]
    blind = [earlier.name for earlier in crew.groups[:position] if not _is_static(earlier)]
    if not group.match and blind:
        why = (
            f"takes the rest after {', '.join(blind)}, which needs steering to match; "
            "the threads stay in the layer of their tier"
        )
        return (("group_needs_steering", why),)
    if _is_static(group):
        return ()
    why = "a match by pattern, title or behaviour needs steering; until then those threads stay "
    return (("group_needs_steering", f"{why}in the layer of their tier"),)


def _sized(crew: TierPods, group: ThreadGroup) -> Settled:
    refusals: tuple[Refusal, ...] = ()
    if crew.tier not in OWNING_TIERS:
        why = f"tier {crew.tier} owns no CPUs; the threads stay with the rest of their pod"
        return Treatment.NORMAL, (("folded", why),)
    if _is_shadowed(crew, group):
        why = "every thread that it names is taken by an earlier group"
        return Treatment.NORMAL, (("folded", why),)
    if group.treatment is Treatment.EXCLUSIVE:
        if exclusive_cores(crew, group):
            return Treatment.EXCLUSIVE, ()
        why = "its pods request no CPU, by which exclusive cores are sized; treated as latency"
        refusals = (("demoted", why),)
    if group.match:
        return Treatment.LATENCY, refusals
    why = "latency for all threads of a pod is its tier's work; they stay in that layer"
    return Treatment.NORMAL, (*refusals, ("folded", why))


def _is_shadowed(crew: TierPods, group: ThreadGroup) -> bool:
    position = crew.groups.index(group)
    parts = [crew.part(earlier, GroupTarget.TIER) for earlier in crew.groups[: position + 1]]
    return not own_conditions(parts, position)


def _is_static(group: ThreadGroup) -> bool:
    return all(match.is_static for match in group.match)


def _fraction(group: ThreadGroup) -> "int | Fraction":
    if group.cpu_fraction is None:
        return 1
    from fractions import Fraction  # noqa: PLC0415 - 0.4 MB, and few profiles have fractions

    # The shortest decimal that reads back as this float is the profile's number.
    return Fraction(str(group.cpu_fraction))
