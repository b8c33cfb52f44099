"""Build the records of a plan's layers from shares and draft."""

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from temper_core.plan.capacity import Capacity, counted
from temper_core.plan.drafting import PlanDraft
from temper_core.plan.groups import GroupRequest, TierPods
from temper_core.plan.rounds import CoreGrant
from temper_core.plan.shares import Shares
from temper_core.records.layers import Layer
from temper_core.records.plans import Note
from temper_core.records.steering import OPEN, SYSTEM, SteeredPlace
from temper_core.records.thread_groups import Treatment
from temper_core.records.tiers import Isolation, LayerKind, Tier
from temper_core.settings import Settings

SYSTEM_WEIGHT = 1000
SYSTEM_UTIL_RANGE = (0.4, 0.7)
LATENCY_SLICE_US = 1_000
"""Slice of a layer with latency threads. They wait that long for another thread of the layer."""
LENT_SLICE_US = 1_000
"""Longest slice of the Open layer where a tier lends its CPUs. It uses them meanwhile."""
OPEN_REASON = "idle CPUs, shared by low, background, everything unmatched, and pods without a core"


@frozen
class Compiled:
    """A compiled plan: layers and notes, and the hints and places of a steered plan."""

    layers: tuple[Layer, ...]
    notes: tuple[Note, ...]
    hints: Mapping[str, int] = field(factory=dict)
    places: tuple[SteeredPlace, ...] = ()


def build_layers(
    all_tier_pods: Sequence[TierPods],
    shares: Shares,
    drawn: PlanDraft,
    capacity: Capacity,
    settings: Settings,
) -> tuple[Layer, ...]:
    """Return the layers in the order in which they match."""
    group_requests = {
        request.name: request for tier_pods in all_tier_pods for request in tier_pods.group_requests
    }
    builder = _Builder(shares, drawn, capacity.unit, settings, tuple(group_requests.values()))
    return tuple(_layer(builder, name, group_requests.get(name)) for name in drawn.drafts)


def _layer(builder: "_Builder", name: str, request: GroupRequest | None) -> Layer:
    if name == SYSTEM:
        return builder.system()
    if name == OPEN:
        return builder.open()
    return builder.tier(Tier(name)) if request is None else builder.group(request)


@frozen
class _Builder:
    """The inputs for the layers of one plan."""

    shares: Shares
    drawn: PlanDraft
    unit: int
    settings: Settings
    group_requests: tuple[GroupRequest, ...]

    def system(self) -> Layer:
        """Return the layer that keeps the node itself served."""
        grant = self.shares.grants.get(SYSTEM)
        owned = grant is not None
        cpus = self.unit if owned else None
        draft = self.drawn.drafts[SYSTEM]
        return Layer(
            name=SYSTEM,
            kind=LayerKind.GROUPED if owned else LayerKind.OPEN,
            matches=self.drawn.blocks[SYSTEM],
            cpus_min=cpus,
            cpus_max=cpus,
            util_range=SYSTEM_UTIL_RANGE if owned else None,
            preempt=True,
            slice_us=self.settings.plan.system_slice_us,
            weight=SYSTEM_WEIGHT,
            members=tuple(sorted(draft.members)),
            reason=grant.reason if grant else "no core of its own; preempts on unowned CPUs",
        )

    def open(self) -> Layer:
        """Return the Open layer, which comes last and takes everything else."""
        draft = self.drawn.drafts[OPEN]
        return Layer(
            name=OPEN,
            kind=LayerKind.OPEN,
            matches=self.drawn.blocks[OPEN],
            slice_us=self._open_slice_us(),
            weight=self.settings.tiers.low.weight,
            members=tuple(sorted(draft.members)),
            reason=OPEN_REASON,
            group_members=tuple(sorted(draft.group_members)),
        )

    def tier(self, tier: Tier) -> Layer:
        """Return the layer of a tier. Its slice is the shortest that a latency group asks for."""
        layer = self._owning(tier.value, tier)
        lends = self._lends(tier)
        slices = [
            request.group.slice_us or LATENCY_SLICE_US
            for request in self.group_requests
            if request.tier is tier and request.treatment is Treatment.LATENCY
        ]
        return evolve(
            layer,
            protected=self.settings.tiers.of(tier).protected and not lends,
            preempt=layer.preempt or lends,
            slice_us=min(layer.slice_us, *slices) if slices else layer.slice_us,
        )

    def group(self, request: GroupRequest) -> Layer:
        """Return the layer of an exclusive thread group.

        It is protected in every tier, since a guest would run beside it on an idle sibling.
        """
        layer = self._owning(request.name, request.tier)
        return evolve(
            layer,
            # A preempting wake-up also takes siblings, and CPUs that the layer does not own.
            preempt=False,
            protected=True,
            exclusive=True,
            slice_us=request.group.slice_us or layer.slice_us,
            weight=request.group.weight or layer.weight,
        )

    def _lends(self, tier: Tier) -> bool:
        """Whether the tier's idle CPUs serve others. It has to preempt to take them back."""
        grant = self.shares.grants.get(tier.value)
        is_asked = self.settings.tiers.of(tier).isolation is Isolation.LEND
        return is_asked and grant is not None and self._may_preempt(grant)

    def _open_slice_us(self) -> int:
        slice_us = self.settings.plan.open_slice_us
        return min(slice_us, LENT_SLICE_US) if any(map(self._lends, Tier)) else slice_us

    def _owning(self, name: str, tier: Tier) -> Layer:
        grant, draft = self.shares.grants[name], self.drawn.drafts[name]
        tier_settings = self.settings.tiers.of(tier)
        return Layer(
            name=name,
            kind=grant.kind,
            matches=self.drawn.blocks[name],
            tier=tier,
            cpus_min=grant.least * self.unit,
            cpus_max=grant.most * self.unit,
            util_range=tier_settings.util_range,
            preempt=tier_settings.preempt and self._may_preempt(grant),
            slice_us=tier_settings.slice_us,
            weight=tier_settings.weight,
            members=tuple(sorted(draft.members)),
            demoted=grant.demoted,
            reason=f"{grant.reason}; {self._size(grant)}",
            group_members=tuple(sorted(draft.group_members)),
        )

    def _may_preempt(self, grant: CoreGrant) -> bool:
        """Whether it may preempt without keeping unowned CPUs that the system layer depends on."""
        if grant.kind is LayerKind.CONFINED:
            return not grant.demoted
        return SYSTEM in self.shares.grants

    def _size(self, grant: CoreGrant) -> str:
        least, most = grant.least, grant.most
        sizes = f"{least}" if least == most else f"{least} to {most}"
        cores = "core" if most == 1 else "cores"
        return f"{sizes} {cores} of {counted(self.unit, 'CPU')}"
