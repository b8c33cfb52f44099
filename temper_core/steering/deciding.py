"""Threads that only user space can judge, and where they belong.

By patterns, titles and behaviour; and the agent's own threads and its engine's, which belong to
the system layer whatever cgroup they were started in.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from attrs import define, frozen

from temper_core.plan.membership import place_index
from temper_core.records.matching import ThreadBehaviour, ThreadIdentity
from temper_core.records.plans import LayerPlan
from temper_core.records.steering import SYSTEM, ScopeKind, SteeredPlace
from temper_core.steering.kernel import ThreadRecord
from temper_core.steering.scopes import PlacedCgroups
from temper_core.steering.sight import ThreadProbe

MOST_REMEMBERED = 16_384
LASTS_S = 30.0
"""How long it is believed that the name of a process, and its user, stay as they are."""


class HintDecision(NamedTuple):
    """What the kernel side is to be told: the hint of one thread, named by its start as well."""

    tid: int
    start_ns: int
    hint: int


@frozen
class _Needs:
    """What must be known of a thread before the rules of its place can be judged."""

    title: bool = False
    behaviour: bool = False
    user: bool = False


@define
class _Steady:
    """Where a thread's behaviour has put it, and where its last window would. Empty for nowhere."""

    start_ns: int
    layer: str = ""
    rival: str = ""
    seen: ThreadBehaviour | None = None


class Judge:
    """Judges threads by one plan after the other. Remembers what it needs for that."""

    def __init__(self, sight: ThreadProbe) -> None:
        self._sight = sight
        self._plan: LayerPlan | None = None
        self._named: tuple[SteeredPlace, ...] = ()
        self._needs: dict[int, _Needs] = {}
        self._layers: dict[ThreadIdentity, str] = {}
        self._steady: dict[int, _Steady] = {}

    def decide(
        self,
        plan: LayerPlan,
        cgroups: PlacedCgroups,
        records: Iterable[ThreadRecord],
        own: AbstractSet[int],
    ) -> tuple[HintDecision, ...]:
        """Return the decisions for those of *records* that are not expected where they belong.

        *own* are the processes that belong to the system layer.
        """
        self._follow(plan)
        found: list[HintDecision] = []
        for record in records:
            layer = SYSTEM if record.tgid in own else self._layer(plan, cgroups, record)
            hint = plan.hints.get(layer)
            if hint is not None and hint != record.expected:
                found.append(HintDecision(record.tid, record.start_ns, hint))
        return tuple(found)

    def lasts_s(self, cgroups: PlacedCgroups, record: ThreadRecord) -> float:
        """Return for how long what was judged of a thread holds, if its name and place do."""
        if record.cgroup_id not in cgroups.paths:
            return 0.0
        needs = self._needs_of(cgroups.places.get(record.cgroup_id))
        if needs.behaviour:
            return 0.0
        return self._sight.title_lasts_s(record.tgid) if needs.title else LASTS_S

    def keep(self, alive: AbstractSet[int]) -> None:
        """Forget all threads and processes but those *alive*."""
        self._sight.keep(alive)
        for tid in self._steady.keys() - alive:
            del self._steady[tid]

    def close(self) -> None:
        """Let go of what sees threads."""
        self._sight.close()

    def _follow(self, plan: LayerPlan) -> None:
        if plan is self._plan:
            return
        self._plan = plan
        self._named = tuple(p for p in plan.steering if p.scope.kind is ScopeKind.PROCESS)
        self._needs.clear()
        self._layers.clear()

    def _layer(self, plan: LayerPlan, cgroups: PlacedCgroups, record: ThreadRecord) -> str:
        """Return the name of the layer, or nothing for a thread of a cgroup not known yet."""
        path = cgroups.paths.get(record.cgroup_id)
        if path is None:
            return ""
        needs = self._needs_of(cgroups.places.get(record.cgroup_id))
        identity = self._identity(path, record, needs)
        if needs.behaviour:
            return self._held(plan, identity, record)
        layer = self._layers.get(identity)
        if layer is None:
            if len(self._layers) >= MOST_REMEMBERED:
                self._layers.clear()
            layer = self._layers[identity] = place_index(plan).layer_of(identity)
        return layer

    def _identity(self, path: str, record: ThreadRecord, needs: _Needs) -> ThreadIdentity:
        sight, tgid = self._sight, record.tgid
        is_leader = record.tid == tgid
        return ThreadIdentity(
            cgroup=f"{path}/",
            comm=record.comm,
            process=record.comm if is_leader else sight.process(tgid),
            uid=0 if needs.user and sight.is_root(tgid) else 1,
            is_leader=is_leader,
            title=sight.title(tgid) if needs.title else "",
            behaviour=self._behaviour(record) if needs.behaviour else None,
        )

    def _behaviour(self, record: ThreadRecord) -> ThreadBehaviour | None:
        return self._sight.behaviour(record.tgid, record.tid, record.start_ns)

    def _held(self, plan: LayerPlan, identity: ThreadIdentity, record: ThreadRecord) -> str:
        """Return the layer by behaviour: another than before only when two windows say so."""
        known = self._steady.get(record.tid)
        if known is None or known.start_ns != record.start_ns:
            known = self._steady[record.tid] = _Steady(record.start_ns)
        if identity.behaviour is None or identity.behaviour is known.seen:
            return known.layer
        known.seen = identity.behaviour
        layer = place_index(plan).layer_of(identity)
        if layer == known.rival:
            known.layer = layer
        known.rival = "" if layer == known.layer else layer
        return known.layer

    def _needs_of(self, place: SteeredPlace | None) -> _Needs:
        known = self._needs.get(id(place))
        if known is None:
            outranks = place is not None and place.outranks_processes
            among = () if outranks else self._named
            known = self._needs[id(place)] = _needs((*among, place) if place else among)
        return known


def _needs(places: Iterable[SteeredPlace]) -> _Needs:
    rules = [rule for place in places for rule in place.rules]
    matches = [rule.match for rule in rules if rule.match is not None]
    return _Needs(
        title=any(match.title_pattern is not None for match in matches),
        behaviour=any(match.behaviour is not None for match in matches),
        user=any(rule.root_only for rule in rules),
    )
