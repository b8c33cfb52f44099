"""Put every pod's threads into layers by the shares, and find groups over the engine's limits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from temper_core.engine.capabilities import (
    LARGEST_LAYER_COUNT,
    LARGEST_OR_COUNT,
    LARGEST_REGEX_COUNT,
)
from temper_core.plan.addresses import AddressedPod
from temper_core.plan.blocks import Block, LayerDraft, count_expressions
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
from temper_core.records.profiles import Treatment
from temper_core.records.steering import OPEN, SYSTEM
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings.tiers import Tiers

ALWAYS = (SYSTEM, OPEN)


@frozen
class Excess:
    """A group that has to stay in its tier's layer, and the limit that forces it."""

    wish: GroupRequest
    why: str


@frozen
class PlanDraft:
    """The layers of a plan by name, in the order in which they match."""

    drafts: Mapping[str, LayerDraft]
    blocks: Mapping[str, tuple[Block, ...]]


def over_layer_limit(
    crews: Sequence[TierPods], tiers: Tiers, most: int = LARGEST_LAYER_COUNT
) -> Iterator[Excess]:
    """Find the least important groups that get no layer because of the limit *most*."""
    own = {crew.tier for crew in crews if tiers.of(crew.tier).kind is not LayerKind.OPEN}
    room = most - len(ALWAYS) - len(own)
    wishes = [wish for crew in crews for wish in crew.wishes if wish.has_layer]
    for wish in sorted(wishes, key=lambda wish: wish.importance)[room:]:
        why = f"the engine takes {LARGEST_LAYER_COUNT} layers, {room} of them for thread groups"
        yield Excess(wish, why)


def fold(crews: Sequence[TierPods], over: Excess) -> tuple[tuple[TierPods, ...], Note]:
    """Leave the threads of the group in their tier's layer. Return a note about it."""
    reduced = tuple(crew.without((over.wish.name,)) for crew in crews)
    why = f"{over.why}; the threads stay in the layer of their tier"
    return reduced, Note("folded", over.wish.name, why)


def sketch(
    crews: Sequence[TierPods], shares: Shares, system: LayerDraft, adrift: Iterable[AddressedPod]
) -> PlanDraft:
    """Draw up every layer's matchers and members. *adrift* are pods without an address."""
    drafts = drafts_of(crews, shares, system, adrift)
    nonempty = {
        name: content for name, content in drafts.items() if name in ALWAYS or not content.is_empty
    }
    blocks = {name: draft.blocks() for name, draft in nonempty.items() if name != OPEN}
    return PlanDraft(nonempty, {**blocks, OPEN: ((),)})


def drafts_of(
    crews: Sequence[TierPods], shares: Shares, system: LayerDraft, adrift: Iterable[AddressedPod]
) -> dict[str, LayerDraft]:
    """Put every pod's threads into drafts by the layer's name, in the order of a static plan."""
    drafts = {SYSTEM: system}
    for crew in crews:
        for position, wish in enumerate(crew.wishes):
            if shares.goals[wish.name] is GroupTarget.OWN:
                drafts[wish.name] = _own_draft(crew, shares, position)
    tiers = [tier.value for tier in Tier if tier.value in shares.grants]
    drafts.update({name: LayerDraft() for name in (*tiers, OPEN)})
    for crew in crews:
        _settle(crew, shares, drafts)
    for located in adrift:
        drafts[OPEN].members[located.pod.key] = None
    return drafts


def excess(crews: Sequence[TierPods], shares: Shares, drawn: PlanDraft) -> Excess | None:
    """Find the least important group that exceeds the engine's limits."""
    for crew in crews:
        narrow = _too_narrow(crew, shares)
        if narrow is not None:
            return narrow
    for crew in crews:
        for wish in crew.wishes:
            if len(drawn.blocks.get(wish.name, ())) > LARGEST_OR_COUNT:
                return Excess(wish, f"its layer would need more than {LARGEST_OR_COUNT} OR blocks")
    for tier in Tier:
        if len(drawn.blocks.get(tier.value, ())) > LARGEST_OR_COUNT:
            why = f"the {tier} layer would need more than {LARGEST_OR_COUNT} OR blocks"
            return Excess(_least(crews, shares, tier), why)
    if count_expressions(drawn.blocks.values()) > LARGEST_REGEX_COUNT:
        why = f"the engine takes {LARGEST_REGEX_COUNT} regular expressions"
        return Excess(_least(crews, shares), why)
    return None


def _too_narrow(crew: TierPods, shares: Shares) -> Excess | None:
    parts = crew.parts(shares.goals)
    why = "the engine's matchers cannot hold all the names that it has to be distinguished from"
    for position, wish in enumerate(crew.wishes):
        if parts[position].goal is GroupTarget.OWN and is_too_much(own_conditions(parts, position)):
            return Excess(wish, why)
    if crew.tier.value in shares.grants and is_too_much(tier_conditions(parts)):
        yielding = [wish for wish in crew.wishes if shares.goals[wish.name] is GroupTarget.OPEN]
        return Excess(yielding[-1], why)
    return None


def _least(crews: Sequence[TierPods], shares: Shares, tier: Tier | None = None) -> GroupRequest:
    """Return the least important group that costs matchers, of *tier* or of all."""
    candidates = [
        wish
        for crew in crews
        for wish in crew.wishes
        if tier in (None, crew.tier) and wish.treatment is not Treatment.NORMAL
        if shares.goals[wish.name] is not GroupTarget.TIER
    ]
    return max(candidates, key=lambda wish: wish.importance)


def _own_draft(crew: TierPods, shares: Shares, position: int) -> LayerDraft:
    conditions = own_conditions(crew.parts(shares.goals), position)
    takes_rest = not crew.wishes[position].group.match
    draft = LayerDraft()
    for member in crew.members:
        draft.add(conditions, member.inside)
        lives_here = takes_rest and not member.outside
        (draft.members if lives_here else draft.group_members)[member.pod.key] = None
    return draft


def _settle(crew: TierPods, shares: Shares, drafts: Mapping[str, LayerDraft]) -> None:
    """Put the threads that no group takes into the layer of the tier, or into Open."""
    tier = drafts.get(crew.tier.value)
    conditions = tier_conditions(crew.parts(shares.goals))
    rest = rest_goal(crew, shares.goals)
    yields = any(shares.goals[wish.name] is GroupTarget.OPEN for wish in crew.wishes)
    for member in crew.members:
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


def rest_goal(crew: TierPods, goals: Mapping[str, GroupTarget]) -> GroupTarget:
    """Return the target of the threads that no match of the crew's profile takes."""
    rest = [wish.name for wish in crew.wishes if not wish.group.match]
    return goals[rest[0]] if rest else GroupTarget.TIER
