"""The notes of a plan that do not concern a single layer, and their order."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from temper_core.plan.addresses import AddressedPod
from temper_core.plan.capacity import Capacity
from temper_core.plan.groups import TierPods
from temper_core.plan.rounds import SIZED_BY_REQUESTS
from temper_core.profiles.conditions import GroupTarget
from temper_core.records.plans import Assignment, Note, ProfileCode
from temper_core.records.steering import SYSTEM
from temper_core.records.tiers import LayerKind
from temper_core.settings.tiers import Tiers


def in_note_order(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return each of *notes* once, by code, subject and message."""
    return tuple(sorted(set(notes), key=lambda note: (note.code, note.subject, note.message)))


def node_notes(capacity: Capacity) -> Iterator[Note]:
    """Yield a note if the node is too small to fence anything."""
    if capacity.fenceable == 0:
        why = f"{capacity.describe()}, so every layer shares them and none is fenced"
        yield Note("small_machine", "node", why)


def size_notes(assignments: Sequence[Assignment]) -> Iterator[Note]:
    """Yield a note for each pod that the node cannot run."""
    for assignment in assignments:
        if assignment.too_large:
            yield Note("too_large", assignment.pod.key, assignment.too_large)


def yield_notes(
    all_tier_pods: Iterable[TierPods], goals: Mapping[str, GroupTarget], tiers: Tiers
) -> Iterator[Note]:
    """Yield a note if the rest of an important pod, with its main thread, yields."""
    for tier_pods in all_tier_pods:
        if (
            tier_pods.tier not in SIZED_BY_REQUESTS
            or tiers.of(tier_pods.tier).kind is LayerKind.OPEN
        ):
            continue
        for request in tier_pods.group_requests:
            if not request.group.match and goals[request.name] is GroupTarget.OPEN:
                why = (
                    f"every thread of these {tier_pods.tier} pods that no other group takes, "
                    "often the main thread too, shares the Open layer with best effort"
                )
                yield Note("group_yields", request.name, why)


def profile_notes(assignments: Sequence[Assignment]) -> Iterator[Note]:
    """Yield notes for claimed pods without a profile, and for ties and expired profiles.

    A disabled profile is none: it is passed over as intended.
    """
    for assignment in assignments:
        loaded, key = assignment.profile, assignment.pod.key
        if loaded is None:
            if assignment.profile_code is not None:
                yield Note("profile_not_applied", key, assignment.profile_reason)
            continue
        if assignment.profile_code is ProfileCode.TIE:
            yield Note("profile_tie", key, assignment.profile_reason)
        if loaded.expired:
            yield Note("profile_expired", key, f"profile {loaded.profile.id}: {loaded.advice}")


def adrift_notes(
    adrift: Sequence[AddressedPod], tiers: Tiers, noted: Container[str] = ()
) -> Iterator[Note]:
    """Yield notes for pods, except *noted*, whose unknown cgroup keeps them out of their layer."""
    for located in adrift:
        kind = tiers.of(located.assignment.tier).kind
        matters = located.assignment.is_system or kind is not LayerKind.OPEN
        if matters and located.pod.key not in noted:
            why = "its cgroup is not known, so its threads share the Open layer"
            yield Note("folded", located.pod.key, why)


def process_notes(dropped: Sequence[str]) -> Iterator[Note]:
    """Yield notes for the processes that get no OR block in the system layer."""
    for name in dropped:
        yield Note("folded", SYSTEM, f"no OR block is left for the process {name!r}")
