"""Limit the process names of a layer: each is an OR block, and blocks of names cannot be joined."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from temper_core.engine.capabilities import LARGEST_OR_COUNT
from temper_core.plan.addresses import Address, AddressedPod, AddressForm
from temper_core.records.plans import Note
from temper_core.records.tiers import LayerKind, Tier, TierOrSystem
from temper_core.settings.tiers import Tiers

# One block is kept for the expression that names every cgroup.
MOST_NAMES = LARGEST_OR_COUNT - 1


def rooms(tiers: Tiers, system_blocks: int) -> Mapping[TierOrSystem, int]:
    """Return how many names each layer can hold. Tiers that share Open are left out."""
    owning = [tier for tier in Tier if tiers.of(tier).kind is not LayerKind.OPEN]
    return {None: MOST_NAMES - system_blocks, **dict.fromkeys(owning, MOST_NAMES)}


def with_room(
    pods: Sequence[AddressedPod], room: Mapping[TierOrSystem, int]
) -> tuple[list[AddressedPod], list[Note]]:
    """Remove names that do not fit the pods' layers, with a note each. Earlier pods come first."""
    used: defaultdict[TierOrSystem, dict[Address, None]] = defaultdict(dict)
    fitted: list[AddressedPod] = []
    notes: list[Note] = []
    for located in pods:
        tier = None if located.assignment.is_system else located.assignment.tier
        most = room.get(tier)
        addresses = located.whole if most is None else tuple(_kept(located, used[tier], most))
        if len(addresses) < len(located.whole):
            notes.append(_note(located, addresses))
            located = evolve(located, whole=addresses, inside=addresses)  # noqa: PLW2901 - the pod, cut
        fitted.append(located)
    return fitted, notes


def _kept(located: AddressedPod, known: dict[Address, None], most: int) -> Iterator[Address]:
    for address in located.whole:
        if address.form is not AddressForm.PROCESS:
            yield address
        elif address in known or len(known) < most:
            known[address] = None
            yield address


def _note(located: AddressedPod, kept: Sequence[Address]) -> Note:
    names = [address.text for address in located.whole if address not in kept]
    why = f"no OR block is left for its processes {', '.join(names)}; they share the Open layer"
    return Note("folded", located.pod.key, why)
