"""One attempt to distribute the node's cores to layers, tier by tier."""

from collections import defaultdict
from collections.abc import Sequence

from attrs import define, evolve, field, frozen

from temper_core.plan.capacity import Capacity, counted
from temper_core.plan.demand import Demand, tier_demand
from temper_core.plan.groups import OWNING_TIERS, GroupRequest, TierPods
from temper_core.profiles.conditions import GroupTarget
from temper_core.records.plans import Note
from temper_core.records.steering import SYSTEM
from temper_core.records.thread_groups import Treatment
from temper_core.records.tiers import LayerKind, Tier, TierOrSystem
from temper_core.settings.tiers import Tiers

SIZED_BY_REQUESTS = (Tier.CRITICAL, Tier.HIGH)


@define
class CoreGrant:
    """The cores of one layer: at least ``least``, at most ``most``.

    ``wants`` are the cores that its requests need. ``ceiling`` are those that its limits allow,
    ``None`` without a limit.
    """

    kind: LayerKind
    tier: Tier | None
    least: int
    most: int
    wants: int
    ceiling: int | None
    demoted: bool = False
    reason: str = ""
    exclusive: bool = False

    @classmethod
    def fixed(
        cls, kind: LayerKind, tier: Tier | None, cores: int, reason: str, *, demoted: bool = False
    ) -> "CoreGrant":
        """Grant exactly *cores*, neither less nor more."""
        return cls(kind, tier, cores, cores, cores, cores, demoted, reason)


@frozen
class Spare:
    """The reserve of a steered plan for pods that have not started yet.

    ``headroom_cores`` are added to the requests of each tier. ``layers`` is the number of the
    engine's layers that the plan may use.
    """

    headroom_cores: int
    layers: int


@define
class Round:
    """One attempt: the cores that are left, and the tiers_and_system that still wait for one."""

    all_tier_pods: Sequence[TierPods]
    capacity: Capacity
    tiers: Tiers
    spare: Spare | None = None
    left: int = field(init=False)
    waiting: set[TierOrSystem] = field(init=False, factory=set)
    grants: dict[str, CoreGrant] = field(init=False, factory=dict)
    goals: dict[str, GroupTarget] = field(init=False)
    demands: dict[Tier, Demand] = field(init=False, factory=dict)
    notes: list[Note] = field(init=False, factory=list)
    by_tier: dict[Tier, list[TierPods]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.left = self.capacity.fenceable
        grouped: defaultdict[Tier, list[TierPods]] = defaultdict(list)
        for tier_pods in self.all_tier_pods:
            grouped[tier_pods.tier].append(tier_pods)
        self.by_tier = dict(grouped)
        self.goals = {
            request.name: _hoped(request)
            for tier_pods in self.all_tier_pods
            for request in tier_pods.group_requests
        }

    def serve(self, tiers_and_system: Sequence[TierOrSystem]) -> None:
        """Go through the tiers_and_system once and give each its minimum."""
        self.waiting = {tier for tier in tiers_and_system if self._waits(tier)}
        for tier in tiers_and_system:
            if tier is None:
                self._serve_system()
            else:
                self._serve_tier(tier)

    def grow(self, tiers_and_system: Sequence[TierOrSystem]) -> None:
        """Raise the maxima up to the requests, in order, then core by core up to the limits.

        The reserve for future pods comes between the two.
        """
        tiers = [tier for tier in tiers_and_system if tier is not None]
        for grant in self._granted(tiers):
            self._raise(grant, grant.wants - grant.most)
        if self.spare is not None:
            self._make_room(tiers, self.spare)
        growing = self._granted(tiers)
        while growing and self.left:
            growing = [
                growable
                for growable in growing
                if growable.ceiling is None or growable.most < growable.ceiling
            ]
            for grant in growing:
                self._raise(grant, 1)

    def _granted(self, tiers: Sequence[Tier]) -> list[CoreGrant]:
        return [self.grants[tier.value] for tier in tiers if tier.value in self.grants]

    def _make_room(self, tiers: Sequence[Tier], spare: Spare) -> None:
        """Add empty standby layers for tiers without pods, and headroom for every tier."""
        for tier in tiers:
            room = spare.layers - len({SYSTEM, *self.grants}) - 1
            if self.left and room > 0 and self._may_stand_by(tier):
                self._take(tier.value, _standing(self.tiers.of(tier).kind, tier))
        for _ in range(min(spare.headroom_cores, self.left)):
            for grant in self._granted(tiers):
                self._raise(grant, 1)

    def _may_stand_by(self, tier: Tier) -> bool:
        # A plan with a core to spare has a core for system too. Then any tier's kind still loads.
        is_owning = tier in OWNING_TIERS and self.tiers.of(tier).kind is not LayerKind.OPEN
        return is_owning and tier.value not in self.grants

    def _raise(self, grant: CoreGrant, cores: int) -> None:
        more = max(0, min(self.left, cores))
        grant.most += more
        self.left -= more

    def _waits(self, tier: TierOrSystem) -> bool:
        if tier is None:
            return True
        return self._needs_core(tier)

    def _note(self, code: str, subject: str, message: str) -> None:
        self.notes.append(Note(code, subject, message))

    def _take(self, name: str, grant: CoreGrant) -> None:
        self.grants[name] = grant
        self.left -= grant.most

    def _serve_system(self) -> None:
        self.waiting.discard(None)
        if self.left:
            reason = "1 core, so that the node is served whatever else is busy"
            self._take(SYSTEM, CoreGrant.fixed(LayerKind.GROUPED, None, 1, reason))
            return
        why = f"{self.capacity.describe()}, none is left; it owns nothing and preempts instead"
        self._note("no_own_core", SYSTEM, why)

    def _serve_tier(self, tier: Tier) -> None:
        all_tier_pods = self.by_tier.get(tier, ())
        exclusive = [
            request
            for tier_pods in all_tier_pods
            for request in tier_pods.group_requests
            if request.treatment is Treatment.EXCLUSIVE
        ]
        for request in sorted(exclusive, key=lambda request: request.importance):
            self._serve_exclusive(request)
        self.waiting.discard(tier)
        demand = tier_demand(all_tier_pods, self.goals)
        if demand is not None:
            self.demands[tier] = demand
            self._serve_demand(tier, demand)

    def _serve_exclusive(self, request: GroupRequest) -> None:
        """Fence the group, or leave its threads to the layer of their tier."""
        tier = request.tier
        rest = int(self._needs_core(tier))
        if request.cores + rest <= self.left:
            fraction = f"cpu_fraction {float(request.fraction):g} of the requests"
            reason = f"{fraction}: {counted(request.cores, 'core')} with idle siblings"
            grant = CoreGrant.fixed(LayerKind.CONFINED, tier, request.cores, reason)
            self._take(request.name, evolve(grant, exclusive=True))
            return
        self.goals[request.name] = GroupTarget.TIER
        if self.tiers.of(tier).kind is not LayerKind.OPEN:
            self.waiting.add(tier)
        for_rest = f" and 1 for the other threads of {tier}" if rest else ""
        needed = f"{counted(request.cores, 'core')} for exclusive use{for_rest}"
        self._note(
            "folded",
            request.name,
            f"{needed}, {self.left} left to own: the threads stay in the layer of their tier",
        )

    def _needs_core(self, tier: Tier) -> bool:
        """Whether threads stay in the tier's layer as the groups' targets are now."""
        if self.tiers.of(tier).kind is LayerKind.OPEN:
            return False
        return tier_demand(self.by_tier.get(tier, ()), self.goals) is not None

    def _serve_demand(self, tier: Tier, demand: Demand) -> None:
        kind = self.tiers.of(tier).kind
        if kind is LayerKind.OPEN:
            return
        wants, ceiling = demand.cores(self.capacity), demand.ceiling(self.capacity)
        if self._is_fenced(tier, wants):
            self._fence(tier, demand, wants, ceiling)
        elif self.left:
            self._serve_grouped(tier, demand, wants, ceiling)
        else:
            why = f"{demand.describe()}; {self.capacity.describe()}, none is left"
            self._note("no_own_core", tier.value, f"{why}: its pods share the Open layer")

    def _fence(self, tier: Tier, demand: Demand, wants: int, ceiling: int | None) -> None:
        reason = demand.describe()
        is_demoted = self.tiers.of(tier).kind is not LayerKind.CONFINED
        if is_demoted:
            reason = (
                f"{reason}: no core is left for the system layer, so {tier} is Confined and does "
                f"not preempt; {self.capacity.describe()}"
            )
            self._note("demoted", tier.value, reason)
        grant = CoreGrant(
            LayerKind.CONFINED, tier, wants, wants, wants, ceiling, is_demoted, reason
        )
        self._take(tier.value, grant)

    def _is_fenced(self, tier: Tier, wants: int) -> bool:
        """Whether the tier's layer is Confined.

        So is a tier sized by requests that takes the last core before the system layer: beside a
        system layer without a core, Grouped threads woke up to 48 ms late while their own CPUs
        were idle, and may keep the Open layer from all unowned CPUs (``docs/starvation.md``).
        """
        if self.tiers.of(tier).kind is LayerKind.CONFINED:
            return wants <= self.left
        takes_last = wants == self.left and SYSTEM not in self.grants
        return tier in SIZED_BY_REQUESTS and takes_last

    def _serve_grouped(self, tier: Tier, demand: Demand, wants: int, ceiling: int | None) -> None:
        is_demoted = self.tiers.of(tier).kind is LayerKind.CONFINED
        least, most = 0, 1
        if is_demoted or tier in SIZED_BY_REQUESTS:
            least = most = min(wants, max(1, self.left - len(self.waiting)))
        reason = demand.describe()
        if is_demoted:
            reason = self._demotion(tier, demand, wants)
            self._note("demoted", tier.value, reason)
        grant = CoreGrant(
            LayerKind.GROUPED, tier, least, most, wants, ceiling, demoted=is_demoted, reason=reason
        )
        self._take(tier.value, grant)

    def _demotion(self, tier: Tier, demand: Demand, wants: int) -> str:
        unit = self.capacity.unit
        fits = self.capacity.fenceable * unit
        return (
            f"{demand.describe()}: {counted(wants, 'core')} of {counted(unit, 'CPU')}, "
            f"but {self.left} left to fence; "
            f"{self.capacity.describe()}, so {tier} is Grouped, not Confined; what fits this node "
            f"is at most {counted(fits, 'CPU')} of {tier} requests in sum"
        )


def _standing(kind: LayerKind, tier: Tier) -> CoreGrant:
    """Return the grant of a tier without pods: it holds no core and may grow to one."""
    return CoreGrant(kind, tier, 0, 1, 1, 1, reason="no pods yet, so it holds no core")


def _hoped(request: GroupRequest) -> GroupTarget:
    """Return the target of the group's threads, provided that a core is left."""
    if request.treatment is Treatment.YIELD:
        return GroupTarget.OPEN
    return GroupTarget.OWN if request.has_layer else GroupTarget.TIER
