"""Decisions about threads that only user space can classify: by more than prefixes of names.

The threads of the agent and of its engines belong to the system layer in any cgroup.
"""

import time
from collections.abc import Callable, Container, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from attrs import define, evolve, frozen

from temper_core.plan.membership import place_index
from temper_core.plan.place_index import Target
from temper_core.records.plans import LayerPlan
from temper_core.records.steering import NO_HINT, SYSTEM, ScopeKind, SteeredPlace
from temper_core.records.thread_groups import ThreadMatch
from temper_core.records.threads import ThreadBehaviour, ThreadIdentity
from temper_core.steering.kernel import ThreadRecord
from temper_core.steering.scopes import PlacedCgroups
from temper_core.steering.thread_probe import ThreadProbe

MOST_REMEMBERED = 16_384
NS_PER_S = 1_000_000_000
LASTS_S = 30.0
"""How long a process's name and user are assumed to stay the same."""
AGREEING, AGREEING_TO_LEAVE = 2, 15
"""Windows of behaviour in a row that move a thread, and that take it out of a group of behaviour.

With windows of 2 s a pool that rests for half a minute keeps its place.
"""


NOWHERE = Target()


class HintDecision(NamedTuple):
    """A hint for one thread, identified by its tid and its start."""

    tid: int
    start_ns: int
    hint: int


@frozen
class _Needs:
    """The facts of a thread that the rules of its place need. ``ages`` are bounds in seconds."""

    title: bool = False
    behaviour: bool = False
    user: bool = False
    exe: bool = False
    parent: bool = False
    child: bool = False
    ages: tuple[float, ...] = ()

    @property
    def origin(self) -> bool:
        """Whether the process's executable or parent counts."""
        return self.exe or self.parent or self.child


@define
class _Steady:
    """A thread's target by behaviour, and the rival of its last windows with their number."""

    start_ns: int
    target: Target = NOWHERE
    rival: Target = NOWHERE
    windows: int = 0
    seen: ThreadBehaviour | None = None


class Judge:
    """Classifies threads by the current plan, and caches the facts it needs.

    *since_boot_s* is the clock of the threads' starts, in seconds (CLOCK_BOOTTIME).
    """

    def __init__(
        self,
        probe: ThreadProbe,
        since_boot_s: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        self._probe = probe
        self._since_boot_s = since_boot_s
        self._plan: LayerPlan | None = None
        self._named: tuple[SteeredPlace, ...] = ()
        self._needs: dict[int, _Needs] = {}
        self._targets: dict[ThreadIdentity, Target] = {}
        self._steady: dict[int, _Steady] = {}

    def targets(
        self,
        plan: LayerPlan,
        cgroups: PlacedCgroups,
        records: Iterable[ThreadRecord],
        own: AbstractSet[int],
    ) -> tuple[tuple[ThreadRecord, Target], ...]:
        """Return the target of each of *records*.

        *own* are the process ids that belong to the system layer.
        """
        self._follow(plan)
        return tuple(
            (
                record,
                Target(SYSTEM) if record.tgid in own else self._target(plan, cgroups, record),
            )
            for record in records
        )

    def lasts_s(self, cgroups: PlacedCgroups, record: ThreadRecord) -> float:
        """Return for how many seconds a decision is valid if the thread's name and place are."""
        if record.cgroup_id not in cgroups.paths:
            return 0.0
        needs = self._needs_of(cgroups.places.get(record.cgroup_id))
        if needs.behaviour:
            return 0.0
        lasts = [LASTS_S, *self._until_older_s(needs, record)]
        if needs.title:
            lasts.append(self._probe.title_lasts_s(record.tgid))
        if needs.origin:
            lasts.append(self._probe.origin_lasts_s(record.tgid))
        return min(lasts)

    def keep(self, alive: AbstractSet[int]) -> None:
        """Forget all threads and processes but those *alive*."""
        self._probe.keep(alive)
        for tid in self._steady.keys() - alive:
            del self._steady[tid]

    @property
    def problem(self) -> str:
        """Why matches hold for no thread of some processes, empty if they may."""
        problems = []
        if denied := self._probe.denied:
            problems.append(
                f"the executables of {denied} processes may not be read: exe needs CAP_SYS_PTRACE"
            )
        if unread := self._probe.unread:
            problems.append(
                f"the command lines of {unread} processes block their readers: matches on titles "
                "hold for none of their threads, or as they were"
            )
        return "; ".join(problems)

    def close(self) -> None:
        """Close the probe."""
        self._probe.close()

    def _follow(self, plan: LayerPlan) -> None:
        if plan is self._plan:
            return
        self._plan = plan
        self._named = tuple(p for p in plan.steering if p.scope.kind is ScopeKind.PROCESS)
        self._needs.clear()
        self._targets.clear()

    def _target(self, plan: LayerPlan, cgroups: PlacedCgroups, record: ThreadRecord) -> Target:
        """Return the target, an empty one for a thread of a cgroup not known yet."""
        path = cgroups.paths.get(record.cgroup_id)
        if path is None:
            return NOWHERE
        needs = self._needs_of(cgroups.places.get(record.cgroup_id))
        identity = self._identity(path, record, needs)
        if needs.behaviour:
            return self._held(plan, identity, record)
        target = self._targets.get(identity)
        if target is None:
            if len(self._targets) >= MOST_REMEMBERED:
                self._targets.clear()
            target = self._targets[identity] = place_index(plan).target_of(identity)
        return target

    def _identity(self, path: str, record: ThreadRecord, needs: _Needs) -> ThreadIdentity:
        probe, tgid = self._probe, record.tgid
        is_leader = record.tid == tgid
        return ThreadIdentity(
            cgroup=f"{path}/",
            comm=record.comm,
            process=record.comm if is_leader else probe.process(tgid),
            uid=0 if needs.user and probe.is_root(tgid) else 1,
            is_leader=is_leader,
            title=probe.title(tgid) if needs.title else "",
            behaviour=self._behaviour(record) if needs.behaviour else None,
            exe=probe.exe(tgid) if needs.exe else "",
            parent=probe.parent(tgid) if needs.parent else "",
            is_child=probe.is_child(tgid) if needs.child else None,
            age_s=self._age_bound(needs, record),
        )

    def _age_bound(self, needs: _Needs, record: ThreadRecord) -> float | None:
        """Return the greatest of the bounds that the thread's age has reached.

        Targets are cached by identity, and exact ages would make every identity a new one.
        """
        if not needs.ages:
            return None
        age_s = self._age_s(record)
        return max((bound for bound in needs.ages if bound <= age_s), default=0.0)

    def _until_older_s(self, needs: _Needs, record: ThreadRecord) -> list[float]:
        """Return the seconds until the thread's age reaches each of the bounds ahead."""
        if not needs.ages:
            return []
        age_s = self._age_s(record)
        return [bound - age_s for bound in needs.ages if bound > age_s]

    def _age_s(self, record: ThreadRecord) -> float:
        return self._since_boot_s() - record.start_ns / NS_PER_S

    def _behaviour(self, record: ThreadRecord) -> ThreadBehaviour | None:
        return self._probe.behaviour(record.tgid, record.tid, record.start_ns)

    def _held(self, plan: LayerPlan, identity: ThreadIdentity, record: ThreadRecord) -> Target:
        """Return the target by behaviour. It changes after some windows with the same new one."""
        state = self._steady.get(record.tid)
        if state is None or state.start_ns != record.start_ns:
            state = self._steady[record.tid] = _Steady(record.start_ns)
        if identity.behaviour is None or identity.behaviour is state.seen:
            return state.target
        state.seen = identity.behaviour
        index = place_index(plan)
        target = index.target_of(identity)
        state.windows = state.windows + 1 if target == state.rival else 1
        state.rival = target
        if target != state.target and state.windows >= AGREEING:
            # Known behaviour without any figure is within no bounds.
            resting = index.target_of(evolve(identity, behaviour=ThreadBehaviour()))
            leaves = state.target != NOWHERE and target == resting
            if not leaves or state.windows >= AGREEING_TO_LEAVE:
                state.target = target
        return state.target

    def _needs_of(self, place: SteeredPlace | None) -> _Needs:
        needs = self._needs.get(id(place))
        if needs is None:
            outranks = place is not None and place.outranks_processes
            among = () if outranks else self._named
            needs = self._needs[id(place)] = _needs((*among, place) if place else among)
        return needs


def _needs(places: Iterable[SteeredPlace]) -> _Needs:
    rules = [rule for place in places for rule in place.rules]
    matches = [rule.match for rule in rules if rule.match is not None]
    return _Needs(
        title=_is_used(matches, "title_pattern"),
        behaviour=_is_used(matches, "behaviour"),
        user=any(rule.root_only for rule in rules),
        exe=_is_used(matches, "exe"),
        parent=_is_used(matches, "parent"),
        child=_is_used(matches, "is_child"),
        ages=tuple({match.older_than_s for match in matches if match.older_than_s is not None}),
    )


def _is_used(matches: Iterable[ThreadMatch], key: str) -> bool:
    return any(getattr(match, key) is not None for match in matches)


def hint_decisions(
    plan: LayerPlan, targets: Iterable[tuple[ThreadRecord, Target]]
) -> Iterator[HintDecision]:
    """Yield a decision for each thread whose expected hint is not that of its target's layer."""
    for record, target in targets:
        hint = plan.hints.get(target.layer)
        if hint is not None and hint != record.expected:
            yield HintDecision(record.tid, record.start_ns, hint)


def withdrawals(
    threads: Iterable[ThreadRecord], own: Container[int], judged_here: Container[int]
) -> Iterator[HintDecision]:
    """Yield withdrawals of decisions about threads that the kernel side can classify now.

    *own* are the agent's processes, *judged_here* the cgroups whose threads user space classifies.
    """
    for thread in threads:
        is_judged = thread.cgroup_id in judged_here or thread.tgid in own
        if thread.is_decided and not is_judged:
            yield HintDecision(thread.tid, thread.start_ns, NO_HINT)
