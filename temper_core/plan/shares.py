"""Decide the order in which layers take cores, so that the plan loads and no layer starves.

The algorithm is that of ``docs/architecture.md``, "How a plan uses CPUs".
"""

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from temper_core.plan.capacity import Capacity
from temper_core.plan.demand import Demand
from temper_core.plan.groups import TierPods
from temper_core.plan.rounds import CoreGrant, Round, Spare
from temper_core.profiles.conditions import GroupTarget
from temper_core.records.plans import Note
from temper_core.records.steering import SYSTEM
from temper_core.records.tiers import LayerKind, Tier, TierOrSystem
from temper_core.settings.tiers import Tiers

MOST_LOOPS = 3
MOST_CORES_WITH_GROUPED = 2
"""Largest machine on which a layer is Grouped although the system layer owns no core."""
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

    def is_sound(self, tiers: Tiers, capacity: Capacity) -> bool:
        """Whether the engine loads it, and the Open layer is served on unowned CPUs.

        If the system layer has no core of its own, a Grouped layer may come before the Open one on
        an unowned CPU, and keep it. On two cores that was tested not to happen
        (``docs/starvation.md``).
        """
        grouped = [grant for grant in self.grants.values() if grant.kind is LayerKind.GROUPED]
        most = 1 if capacity.cores <= MOST_CORES_WITH_GROUPED else 0
        return self._loads(tiers) and (SYSTEM in self.grants or len(grouped) <= most)

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
    shares = _in_order(all_tier_pods, capacity, tiers, SYSTEM_AFTER_HIGH, spare)
    if shares.normal_is_left_out and SYSTEM in shares.grants:
        alternative = _in_order(all_tier_pods, capacity, tiers, SYSTEM_AFTER_NORMAL, spare)
        if alternative.is_sound(tiers, capacity) and not alternative.normal_is_left_out:
            shares = alternative
    if not shares.is_sound(tiers, capacity):
        shares = _in_order(all_tier_pods, capacity, tiers, SYSTEM_FIRST, spare)
    return shares


def _in_order(
    all_tier_pods: Sequence[TierPods],
    capacity: Capacity,
    tiers: Tiers,
    tiers_and_system: Sequence[TierOrSystem],
    spare: Spare | None,
) -> Shares:
    attempt = Round(all_tier_pods, capacity, tiers, spare)
    attempt.serve(tiers_and_system)
    attempt.grow(tiers_and_system)
    notes = (*attempt.notes, *_lost_preemption(attempt.grants, tiers))
    return Shares(attempt.grants, attempt.goals, attempt.demands, notes)


def _lost_preemption(grants: Mapping[str, CoreGrant], tiers: Tiers) -> Iterator[Note]:
    """Yield a note for each Grouped layer that may not preempt, because system owns no core."""
    if SYSTEM in grants:
        return
    for name, grant in grants.items():
        if grant.kind is not LayerKind.GROUPED or grant.tier is None:
            continue
        if tiers.of(grant.tier).preempt:
            why = "the system layer owns no core, so this layer does not preempt"
            yield Note("no_preempt", name, why)
