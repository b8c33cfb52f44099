"""Put every pod's threads into layers by the shares, and find groups over the engine's limits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from temper_core.engine.capabilities import (
    LARGEST_LAYER_COUNT,
    LARGEST_OR_COUNT,
    LARGEST_REGEX_COUNT,
)
from temper_core.plan.addresses import AddressedPod
from temper_core.plan.blocks import Block, LayerDraft, count_expressions, unsplit
from temper_core.plan.groups import GroupRequest, TierPods
from temper_core.plan.shares import Shares
from temper_core.profiles.conditions import (
    ANYTHING,
    Condition,
    GroupTarget,
    is_too_much,
    own_conditions,
    tier_conditions,
)
from temper_core.records.plans import Note
from temper_core.records.steering import OPEN, SYSTEM
from temper_core.records.thread_groups import Treatment
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings.tiers import Tiers

ALWAYS = (SYSTEM, OPEN)


@frozen
class Excess:
    """A group that has to stay in its tier's layer, and the limit that forces it."""

    request: GroupRequest
    why: str


@frozen
class PlanDraft:
    """The layers of a plan by name, in the order in which they match."""

    drafts: Mapping[str, LayerDraft]
    blocks: Mapping[str, tuple[Block, ...]]


def over_layer_limit(
    all_tier_pods: Sequence[TierPods], tiers: Tiers, most: int = LARGEST_LAYER_COUNT
) -> Iterator[Excess]:
    """Find the least important groups that get no layer because of the limit *most*."""
    own = {
        tier_pods.tier
        for tier_pods in all_tier_pods
        if tiers.of(tier_pods.tier).kind is not LayerKind.OPEN
    }
    room = most - len(ALWAYS) - len(own)
    group_requests = [
        request
        for tier_pods in all_tier_pods
        for request in tier_pods.group_requests
        if request.has_layer
    ]
    for request in sorted(group_requests, key=lambda request: request.importance)[room:]:
        why = f"the engine takes {LARGEST_LAYER_COUNT} layers, {room} of them for thread groups"
        yield Excess(request, why)


def fold(all_tier_pods: Sequence[TierPods], over: Excess) -> tuple[tuple[TierPods, ...], Note]:
    """Leave the threads of the group in their tier's layer. Return a note about it."""
    reduced = tuple(tier_pods.without((over.request.name,)) for tier_pods in all_tier_pods)
    why = f"{over.why}; the threads stay in the layer of their tier"
    return reduced, Note("folded", over.request.name, why)


def sketch(
    all_tier_pods: Sequence[TierPods],
    shares: Shares,
    system: LayerDraft,
    adrift: Iterable[AddressedPod],
) -> PlanDraft:
    """Draw up every layer's matchers and members. *adrift* are pods without an address."""
    drafts = drafts_of(all_tier_pods, shares, system, adrift)
    nonempty = {
        name: content for name, content in drafts.items() if name in ALWAYS or not content.is_empty
    }
    blocks = {name: draft.blocks() for name, draft in nonempty.items() if name != OPEN}
    return PlanDraft(nonempty, {**blocks, OPEN: ((),)})


def drafts_of(
    all_tier_pods: Sequence[TierPods],
    shares: Shares,
    system: LayerDraft,
    adrift: Iterable[AddressedPod],
) -> dict[str, LayerDraft]:
    """Put every pod's threads into drafts by the layer's name, in the order of a static plan."""
    drafts = {SYSTEM: system}
    for tier_pods in all_tier_pods:
        for position, request in enumerate(tier_pods.group_requests):
            if shares.goals[request.name] is GroupTarget.OWN:
                drafts[request.name] = _own_draft(tier_pods, shares, position)
    tiers = [tier.value for tier in Tier if tier.value in shares.grants]
    drafts.update({name: LayerDraft() for name in (*tiers, OPEN)})
    for tier_pods in all_tier_pods:
        _settle(tier_pods, shares, drafts)
    for located in adrift:
        drafts[OPEN].members[located.pod.key] = None
    return drafts


def excess(all_tier_pods: Sequence[TierPods], shares: Shares, drawn: PlanDraft) -> Excess | None:
    """Find the least important group whose conditions exceed the engine's limits.

    What the number and length of the addresses exceeds is in ``crowding.py``.
    """
    for tier_pods in all_tier_pods:
        narrow = _too_narrow(tier_pods, shares)
        if narrow is not None:
            return narrow
    blocks = {name: unsplit(blocks) for name, blocks in drawn.blocks.items()}
    for tier_pods in all_tier_pods:
        for request in tier_pods.group_requests:
            if len(blocks.get(request.name, ())) > LARGEST_OR_COUNT:
                return Excess(
                    request, f"its layer would need more than {LARGEST_OR_COUNT} OR blocks"
                )
    for tier in Tier:
        if len(blocks.get(tier.value, ())) > LARGEST_OR_COUNT:
            why = f"the {tier} layer would need more than {LARGEST_OR_COUNT} OR blocks"
            return Excess(_least(all_tier_pods, shares, tier), why)
    if count_expressions(blocks.values()) > LARGEST_REGEX_COUNT:
        why = f"the engine takes {LARGEST_REGEX_COUNT} regular expressions"
        return Excess(_least(all_tier_pods, shares), why)
    return None


def _too_narrow(tier_pods: TierPods, shares: Shares) -> Excess | None:
    parts = tier_pods.parts(shares.goals)
    why = "the engine's matchers cannot hold all the names that it has to be distinguished from"
    for position, request in enumerate(tier_pods.group_requests):
        if parts[position].goal is GroupTarget.OWN and is_too_much(own_conditions(parts, position)):
            return Excess(request, why)
    if tier_pods.tier.value in shares.grants and is_too_much(tier_conditions(parts)):
        yielding = [
            request
            for request in tier_pods.group_requests
            if shares.goals[request.name] is GroupTarget.OPEN
        ]
        return Excess(yielding[-1], why)
    return None


def _least(
    all_tier_pods: Sequence[TierPods], shares: Shares, tier: Tier | None = None
) -> GroupRequest:
    """Return the least important group that costs matchers, of *tier* or of all."""
    candidates = [
        request
        for tier_pods in all_tier_pods
        for request in tier_pods.group_requests
        if tier in (None, tier_pods.tier) and request.treatment is not Treatment.NORMAL
        if shares.goals[request.name] is not GroupTarget.TIER
    ]
    return max(candidates, key=lambda request: request.importance)


def _own_draft(tier_pods: TierPods, shares: Shares, position: int) -> LayerDraft:
    conditions = own_conditions(tier_pods.parts(shares.goals), position)
    takes_rest = not tier_pods.group_requests[position].group.match
    draft = LayerDraft()
    for member in tier_pods.members:
        draft.add(conditions, member.inside)
        lives_here = takes_rest and not member.outside
        (draft.members if lives_here else draft.group_members)[member.pod.key] = None
    return draft


def _settle(tier_pods: TierPods, shares: Shares, drafts: Mapping[str, LayerDraft]) -> None:
    """Put the threads that no group takes into the layer of the tier, or into Open."""
    tier = drafts.get(tier_pods.tier.value)
    conditions = tier_conditions(tier_pods.parts(shares.goals))
    rest = rest_goal(tier_pods, shares.goals)
    yields = any(
        shares.goals[request.name] is GroupTarget.OPEN for request in tier_pods.group_requests
    )
    for member in tier_pods.members:
        key = member.pod.key
        stays = rest is GroupTarget.TIER or bool(member.outside)
        if tier is not None and (conditions or member.outside):
            _place(tier, member, conditions)
            (tier.members if stays else tier.group_members)[key] = None
        if (stays and tier is None) or (rest is GroupTarget.OPEN and not member.outside):
            drafts[OPEN].members[key] = None
        elif yields or (tier is None and conditions):
            drafts[OPEN].group_members[key] = None


def _place(tier: LayerDraft, member: AddressedPod, conditions: Sequence[Condition]) -> None:
    if ANYTHING in conditions:
        tier.add((ANYTHING,), member.whole)
        return
    tier.add(conditions, member.inside)
    tier.add((ANYTHING,), member.outside)


def rest_goal(tier_pods: TierPods, goals: Mapping[str, GroupTarget]) -> GroupTarget:
    """Return the target of the threads that no match of the profile takes."""
    rest = [request.name for request in tier_pods.group_requests if not request.group.match]
    return goals[rest[0]] if rest else GroupTarget.TIER
