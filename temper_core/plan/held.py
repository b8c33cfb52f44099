"""Shares held to the layers in force: the best plan without a new engine."""

from collections.abc import Iterator, Mapping, Sequence

from temper_core.plan.capacity import Capacity, counted
from temper_core.plan.demand import Demand, tier_demand
from temper_core.plan.groups import GroupRequest, TierPods
from temper_core.plan.rounds import CoreGrant
from temper_core.plan.shares import Shares, share_out
from temper_core.profiles.conditions import GroupTarget
from temper_core.records.layers import Layer
from temper_core.records.plans import Note
from temper_core.records.thread_groups import Treatment
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings.tiers import Tiers

WAITING = "waiting"


def held_shares(
    in_force: Sequence[Layer], all_tier_pods: Sequence[TierPods], capacity: Capacity, tiers: Tiers
) -> Shares:
    """Return shares whose grants are those of the layers *in_force*, whatever the pods request.

    Threads of a group go into its layer if that is in force. If not, they stay in their tier's
    layer, or in Open. A grant that only the next engine can give becomes a note of the code
    ``waiting``.
    """
    grants = {
        layer.name: _grant(layer, capacity)
        for layer in in_force
        if layer.kind is not LayerKind.OPEN
    }
    goals = {
        request.name: _goal(request, grants)
        for tier_pods in all_tier_pods
        for request in tier_pods.group_requests
    }
    fresh = share_out(all_tier_pods, capacity, tiers)
    notes = [note for note in fresh.notes if _still_holds(note, grants, fresh)]
    notes += _waiting(grants, fresh, capacity)
    return Shares(grants, goals, _demands(all_tier_pods, goals, tiers), tuple(notes))


def _grant(layer: Layer, capacity: Capacity) -> CoreGrant:
    least, most = (layer.cpus_min or 0) // capacity.unit, (layer.cpus_max or 0) // capacity.unit
    reason = layer.reason
    if layer.tier is not None:
        # The size comes last, and the builder of the layer writes it again.
        reason = reason.rpartition("; ")[0] or reason
    return CoreGrant(
        kind=layer.kind,
        tier=layer.tier,
        least=least,
        most=most,
        wants=least,
        ceiling=most,
        demoted=layer.demoted,
        reason=reason,
        exclusive=layer.exclusive,
    )


def _goal(request: GroupRequest, grants: Mapping[str, CoreGrant]) -> GroupTarget:
    if request.treatment is Treatment.YIELD:
        return GroupTarget.OPEN
    return GroupTarget.OWN if request.has_layer and request.name in grants else GroupTarget.TIER


def _demands(
    all_tier_pods: Sequence[TierPods], goals: Mapping[str, GroupTarget], tiers: Tiers
) -> Mapping[Tier, Demand]:
    demands = {}
    for tier in Tier:
        demand = tier_demand(
            [tier_pods for tier_pods in all_tier_pods if tier_pods.tier is tier], goals
        )
        if demand is not None and tiers.of(tier).kind is not LayerKind.OPEN:
            demands[tier] = demand
    return demands


def _still_holds(note: Note, grants: Mapping[str, CoreGrant], fresh: Shares) -> bool:
    """Whether a refusal of the fresh plan also holds for the layers in force."""
    held_grant, new = grants.get(note.subject), fresh.grants.get(note.subject)
    if held_grant is None:
        return new is None
    return held_grant.demoted and new is not None and new.demoted


def _waiting(grants: Mapping[str, CoreGrant], fresh: Shares, capacity: Capacity) -> Iterator[Note]:
    """Yield a note for each grant of a new plan that the layers in force cannot give."""
    for name, new in fresh.grants.items():
        held_grant = grants.get(name)
        if held_grant is None:
            size = f"up to {counted(new.most, 'core')} of {counted(capacity.unit, 'CPU')}"
            why = f"{size}, {new.reason}; until then {_meanwhile(name, new, grants)}"
        elif new.least > held_grant.most or (new.demoted and not held_grant.demoted):
            why = f"{counted(new.least, 'core')} needed, {held_grant.most} in force, {new.reason}"
        else:
            continue
        yield Note(WAITING, name, f"waits for the next engine: {why}")


def _meanwhile(name: str, new: CoreGrant, grants: Mapping[str, CoreGrant]) -> str:
    if new.tier is None:
        return "it owns nothing"
    if name != new.tier.value and new.tier.value in grants:
        return "the threads stay in the layer of their tier"
    return "the threads share the Open layer"
