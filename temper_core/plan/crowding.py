"""Relieve a plan whose addresses need more regular expressions than the engine takes.

The pods with the most and longest addresses go first, so that no pod displaces others by its size.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from temper_core.engine.capabilities import LARGEST_OR_COUNT, LARGEST_REGEX_COUNT
from temper_core.plan.addresses import Address, AddressedPod, AddressForm
from temper_core.plan.blocks import count_expressions
from temper_core.plan.drafting import PlanDraft
from temper_core.records.plans import Note

WHY = "the engine's regular expressions cannot hold all the cgroups of this node's pods"


@frozen
class Crowding:
    """The letters of addresses in layers that have too many.

    Attributes:
        letters: Letters by address. Empty if all fits.
        excess: About how many of them are too many.

    """

    letters: Mapping[Address, int]
    excess: float


def crowding(drawn: PlanDraft) -> Crowding:
    """Return what is too much for the engine in the layers of *drawn*."""
    of_all = _excess_share(count_expressions(drawn.blocks.values()), LARGEST_REGEX_COUNT)
    letters: Counter[Address] = Counter()
    excess = 0.0
    for name, blocks in drawn.blocks.items():
        share = max(of_all, _excess_share(len(blocks), LARGEST_OR_COUNT))
        if not share:
            continue
        own: Counter[Address] = Counter()
        for _, address in drawn.drafts[name].places:
            if address.form is not AddressForm.PROCESS:
                own[address] += address.letters
        letters += own
        excess += share * own.total()
    return Crowding(letters, excess)


def _excess_share(count: int, most: int) -> float:
    return max(0.0, 1 - most / count) if count else 0.0


def relieve(
    pods: Sequence[AddressedPod], crowd: Crowding, least: int
) -> tuple[list[AddressedPod], dict[str, Note]]:
    """Shorten the addresses of pods until the excess is gone, with a note each.

    They are *least* pods or more. None of them takes less than half of the letters of the pod
    that takes the most. The containers of a pod become one. If no such pod is left among them,
    pods share the Open layer.
    """
    taken = [sum(crowd.letters.get(address, 0) for address in pod.addresses) for pod in pods]
    lightest = max(1, max(taken, default=0) / 2)
    heavy = [at for at in range(len(pods)) if taken[at] >= lightest]
    heavy.sort(key=lambda at: (-taken[at], -pods[at].assignment.tier.rank, at))
    divided = [at for at in heavy if _is_divided(pods[at], crowd.letters)]
    relieved, saved = list(pods), 0
    notes: dict[str, Note] = {}
    for at in divided or heavy:
        if saved >= crowd.excess and len(notes) >= least:
            break
        relieved[at], notes[pods[at].pod.key] = _relieved(pods[at], crowd.letters)
        saved += taken[at]
    return relieved, notes


def _is_divided(located: AddressedPod, letters: Mapping[Address, int]) -> bool:
    apart = (*located.inside, *located.outside) if located.inside != located.whole else ()
    return any(address in letters for address in apart)


def _relieved(located: AddressedPod, letters: Mapping[Address, int]) -> tuple[AddressedPod, Note]:
    if _is_divided(located, letters):
        short = evolve(located, inside=located.whole, outside=())
        then = "its profile applies to all its containers"
    else:
        short = evolve(located, whole=(), inside=())
        then = "its threads share the Open layer"
    return short, Note("folded", located.pod.key, f"{WHY}; {then}")
