"""Relieve a plan whose addresses need more regular expressions than the engine takes.

The pods with the most and longest addresses go first, so that no pod displaces others by its size.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import evolve

from temper_core.engine.capabilities import LARGEST_OR_COUNT, LARGEST_REGEX_COUNT
from temper_core.plan.addresses import Address, AddressedPod, AddressForm
from temper_core.plan.blocks import count_expressions
from temper_core.plan.drafting import PlanDraft
from temper_core.records.plans import Note

WHY = "the engine's regular expressions cannot hold all the cgroups of this node's pods"


def crowding(drawn: PlanDraft) -> Mapping[Address, int]:
    """Return the letters that each address takes in layers with too many. Empty if all fits."""
    names = [name for name, blocks in drawn.blocks.items() if len(blocks) > LARGEST_OR_COUNT]
    if count_expressions(drawn.blocks.values()) > LARGEST_REGEX_COUNT:
        names = list(drawn.blocks)
    letters: Counter[Address] = Counter()
    for name in names:
        for _, address in drawn.drafts[name].places:
            if address.form is not AddressForm.PROCESS:
                letters[address] += address.letters
    return letters


def relieve(
    pods: Sequence[AddressedPod], letters: Mapping[Address, int], most: int
) -> tuple[list[AddressedPod], dict[str, Note]]:
    """Shorten the addresses of at most *most* pods, with a note each.

    None of them takes less than half of the *letters* of the pod that takes the most. The
    containers of a pod become one. If no such pod is left among them, pods share the Open layer.
    """
    taken = [sum(letters.get(address, 0) for address in pod.addresses) for pod in pods]
    least = max(1, max(taken, default=0) / 2)
    heavy = [at for at in range(len(pods)) if taken[at] >= least]
    heavy.sort(key=lambda at: (-taken[at], -pods[at].assignment.tier.rank, at))
    divided = [at for at in heavy if _is_divided(pods[at], letters)]
    relieved = list(pods)
    notes: dict[str, Note] = {}
    for at in (divided or heavy)[:most]:
        relieved[at], notes[pods[at].pod.key] = _relieved(pods[at], letters)
    return relieved, notes


def _is_divided(located: AddressedPod, letters: Mapping[Address, int]) -> bool:
    return any(address in letters for address in located.outside)


def _relieved(located: AddressedPod, letters: Mapping[Address, int]) -> tuple[AddressedPod, Note]:
    if _is_divided(located, letters):
        short = evolve(located, inside=located.whole, outside=())
        then = "its profile applies to all its containers"
    else:
        short = evolve(located, whole=(), inside=())
        then = "its threads share the Open layer"
    return short, Note("folded", located.pod.key, f"{WHY}; {then}")
