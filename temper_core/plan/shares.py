"""Decide the order in which layers take cores, so that the plan loads and no layer starves.

The algorithm is that of ``docs/architecture.md``, "How a plan uses CPUs".
"""

from collections.abc import Mapping, Sequence

from attrs import frozen

from temper_core.plan.capacity import Capacity
from temper_core.plan.demand import Demand
from temper_core.plan.groups import TierPods
from temper_core.plan.rounds import CoreGrant, Round, Spare
from temper_core.profiles.conditions import GroupTarget
from temper_core.records.plans import Note
from temper_core.records.profiles import Treatment
from temper_core.records.steering import SYSTEM
from temper_core.records.tiers import LayerKind, Tier, TierOrSystem
from temper_core.settings.tiers import Tiers

MOST_LOOPS = 3
SYSTEM_AFTER_HIGH: tuple[TierOrSystem, ...] = (Tier.CRITICAL, Tier.HIGH, None, *list(Tier)[2:])
SYSTEM_AFTER_NORMAL: tuple[TierOrSystem, ...] = (*list(Tier)[:3], None, *list(Tier)[3:])
SYSTEM_FIRST: tuple[TierOrSystem, ...] = (None, *Tier)


@frozen
class Shares:
    """Grants of cores by layer name, and the target of each group's threads."""

    grants: Mapping[str, CoreGrant]
    goals: Mapping[str, GroupTarget]
    demands: Mapping[Tier, Demand]
    notes: tuple[Note, ...]

    @property
    def normal_is_left_out(self) -> bool:
        """Whether normal pods share the Open layer."""
        return Tier.NORMAL in self.demands and Tier.NORMAL.value not in self.grants

    def is_sound(self, tiers: Tiers) -> bool:
        """Whether the engine loads it, and the Open layer is served on unowned CPUs.

        If the system layer has no core of its own, a second Grouped layer may come before the
        Open one on every such CPU, and keep it (``docs/starvation.md``).
        """
        grouped = [grant for grant in self.grants.values() if grant.kind is LayerKind.GROUPED]
        return self._loads(tiers) and (SYSTEM in self.grants or len(grouped) <= 1)

    def _loads(self, tiers: Tiers) -> bool:
        """Whether it has at most three of {Open, Grouped} x {preempt, not}: four do not verify."""
        loops = {(LayerKind.OPEN, False)}
        loops.add((LayerKind.GROUPED if SYSTEM in self.grants else LayerKind.OPEN, True))
        for grant in self.grants.values():
            if grant.kind is LayerKind.GROUPED and grant.tier is not None:
                loops.add((LayerKind.GROUPED, tiers.of(grant.tier).preempt))
        return len(loops) <= MOST_LOOPS


def share_out(
    all_tier_pods: Sequence[TierPods], capacity: Capacity, tiers: Tiers, spare: Spare | None = None
) -> Shares:
    """Distribute the cores. *spare* adds a reserve for pods that have not started yet.

    The system layer takes its core after ``high``. It leaves the last core to ``normal`` if the
    plan still loads when the system layer owns nothing.
    """
    shares = _with_latency(all_tier_pods, capacity, tiers, SYSTEM_AFTER_HIGH, spare)
    if shares.normal_is_left_out and SYSTEM in shares.grants:
        alternative = _with_latency(all_tier_pods, capacity, tiers, SYSTEM_AFTER_NORMAL, spare)
        if alternative.is_sound(tiers) and not alternative.normal_is_left_out:
            shares = alternative
    if not shares.is_sound(tiers):
        shares = _with_latency(all_tier_pods, capacity, tiers, SYSTEM_FIRST, spare)
    return shares


def _with_latency(
    all_tier_pods: Sequence[TierPods],
    capacity: Capacity,
    tiers: Tiers,
    tiers_and_system: Sequence[TierOrSystem],
    spare: Spare | None,
) -> Shares:
    """Give latency groups the cores that no other layer needs, most important first."""
    group_requests = [
        request for tier_pods in all_tier_pods for request in tier_pods.group_requests
    ]
    latency = [request for request in group_requests if request.treatment is Treatment.LATENCY]
    first = Round(all_tier_pods, capacity, tiers, spare=spare)
    first.serve(tiers_and_system)
    served = sorted(latency, key=lambda request: request.importance)[: first.left]
    final = first
    if served:
        # Without these groups a tier may keep no thread at all, and need no core.
        final = Round(all_tier_pods, capacity, tiers, served, spare)
        final.serve(tiers_and_system)
    for request in latency:
        final.serve_latency(request, request in served)
    final.grow(tiers_and_system)
    return Shares(final.grants, final.goals, final.demands, tuple(final.notes))
