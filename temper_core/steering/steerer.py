"""Steering: every thread of the node gets the hint of its layer in the plan.

The kernel side sets hints at fork and on every change. The walks of ``turn`` correct missed
threads, decide those that only user space can classify, and kick threads that do not follow.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import structlog
from attrs import define, evolve, frozen

from temper_core.errors import BpfError, MachineError
from temper_core.records.executions import Execution
from temper_core.records.plans import LayerPlan
from temper_core.records.steering import LOOK_EVERY_S, SteeringState
from temper_core.steering.columns import Wanted, at_rest, key_of, pick, tids
from temper_core.steering.deciding import Judge, hint_decisions, withdrawals
from temper_core.steering.engine_layers import NO_ENGINE, EngineLayers, RunningEngine
from temper_core.steering.kernel import SteeringKernel, ThreadRecord, WalkCounts
from temper_core.steering.kicking import Kicker, MisplacedThread
from temper_core.steering.niceness import Niceness, WantedNice
from temper_core.steering.pin import PinPlace
from temper_core.steering.scopes import CgroupIds, PlacedCgroups, place_cgroups
from temper_core.steering.table import SteeringTable, build_table
from temper_core.steering.truth import Truths, layer_name

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

SOON_S = 0.1
"""The time to the next walk if threads need another look soon."""
OWN_EVERY_S = 5.0
"""The period of searching all threads for new ones of the agent and its engines."""
REST = 1000
"""The pause after a walk that found nothing to do, in multiples of its CPU time: 0.1 % of a CPU."""
MOST_PERIODS = 3
"""The longest such pause, in periods."""
PIN_EVERY_S = 10.0
FORGET_EVERY_S = 60.0
MOST_UNRESOLVED = 20
TABLE_REST = 10
"""The pause before new cgroups are written to the table, as a multiple of the last write's time."""


@frozen
class KernelSide:
    """Steering's kernel interfaces: its BPF object, the map's pin, and the cgroups."""

    object: SteeringKernel
    pin: PinPlace
    cgroups: CgroupIds


@define
class _Dues:
    """The next moments of the periodic tasks, in monotonic seconds."""

    own: float = 0.0
    table: float = 0.0
    pin: float = 0.0
    forget: float = 0.0


class Steerer:
    """Steers this node. Implements the scheduler's ``HintMap``. Belongs to the agent's main thread.

    ``state`` is the part of the snapshot about steering, and is replaced as a whole. Without a
    *kicker* threads that do not follow are only counted.
    """

    def __init__(
        self,
        kernel: KernelSide,
        judge: Judge,
        kicker: Kicker | None,
        niceness: Niceness,
        *,
        period_s: float,
    ) -> None:
        self.state = SteeringState(mode="hints")
        self._kernel = kernel.object
        self._pin = kernel.pin
        self._cgroups = kernel.cgroups
        self._judge = judge
        self._kicker = kicker
        self._niceness = niceness
        self._period_s = period_s
        self._engine = EngineLayers()
        self._plan: LayerPlan | None = None
        self._placed = PlacedCgroups()
        self._table = SteeringTable()
        self._names: dict[int, str] = {}
        self._at_rest: frozenset[int] = frozenset()
        self._events_seen = -1
        self._is_table_old = False
        self._is_table_new = False
        self._settled: dict[bytes, float] = {}
        self._walked: set[int] = set()
        """Thread ids of partial walks since threads were last forgotten."""
        self._pin_problem = ""
        self._dues = _Dues()

    @property
    def path(self) -> Path:
        """The path of the pinned map of hints."""
        return self._pin.path

    @property
    def cgroup_events(self) -> int:
        """The number of cgroups made or removed so far. Cheap to read."""
        return self._kernel.cgroup_events

    @property
    def exec_count(self) -> int:
        """The number of programs executed on the node so far. Cheap to read."""
        return self._kernel.exec_count

    def executions(self, seen: int) -> tuple[Sequence[Execution], int]:
        """Return the executions after the first *seen*, and the number that are seen then.

        The list is shorter than the difference of the two numbers if some were overwritten.
        """
        return self._kernel.executions(seen)

    def ready(self, plan: LayerPlan) -> None:
        """Pin the map, and set every thread's hint as *plan* requires.

        Raises MachineError if the map cannot be pinned or a hint cannot be set.
        """
        self._ensure_pin()
        self._follow_plan(plan)
        self._set_table(plan)
        self._dues.own = 0.0
        self._walk(plan, time.monotonic())

    def mend(self) -> None:
        """Pin the map if it is not pinned. Raise MachineError if that is impossible."""
        self._ensure_pin()

    def apply(self, plan: LayerPlan) -> None:
        """Steer by *plan* from now on. The next ``turn`` moves the existing threads."""
        self._follow_plan(plan)
        self._is_table_old = True

    def turn(self, now: float, engine: RunningEngine = NO_ENGINE) -> float:
        """Walk over all threads once. Return the seconds to the next walk.

        Failures are reported in ``state`` and never raised.
        """
        plan = self._plan
        if plan is None:
            return self._period_s
        self._follow_engine(plan, engine, now)
        self._look_after_pin(now)
        started_cpu, steered = time.thread_time(), self.state.steered
        try:
            if self._is_table_due(now):
                started = time.monotonic()
                self._set_table(plan)
                took_s = time.monotonic() - started
                self._dues.table = now + took_s * (1 + TABLE_REST)
            threads, has_decided = self._walk(plan, now)
        except BpfError as error:
            self._fail(str(error))
            return self._period_s
        if self._kick(threads, now) or has_decided:
            return SOON_S
        if self.state.steered != steered:
            return self._period_s
        return self._pause_s(time.thread_time() - started_cpu)

    def truth(self) -> Truths | None:
        """Return all threads as they are now, None before the first plan or on failure.

        It changes no hint, so that a hint of another writer is visible and counted later.
        """
        if self._plan is None:
            return None
        try:
            self._kernel.walk(engine=self._engine.record, write=False)
        except BpfError as error:
            self._fail(str(error))
            return None
        content, names = self._kernel.content(), dict(self._names)
        return Truths(self._plan, self._placed, content, names, self._layers)

    def close(self) -> None:
        """Remove the pin and detach from the kernel. The hints end with the map."""
        self.release()
        self._pin.remove()
        self._kernel.close()
        self._judge.close()

    def release(self) -> None:
        """Give all threads their nice values back. The next ``turn`` may change them again."""
        if self._niceness.held:
            self._niceness.release()
            self._is_table_new = True

    @property
    def _layers(self) -> Sequence[str]:
        return self._engine.engine.layers

    def _pause_s(self, took_s: float) -> float:
        """Return the pause after a walk without changes, which took *took_s* of CPU time."""
        if self._table.judged_here:
            return min(LOOK_EVERY_S, self._period_s)
        if self.state.astray:
            return self._period_s
        return max(self._period_s, min(REST * took_s, MOST_PERIODS * self._period_s))

    def _follow_plan(self, plan: LayerPlan) -> None:
        self._plan = plan
        self._names.update((hint, name) for name, hint in plan.hints.items())
        self._at_rest = at_rest(plan.hints, self._layers)

    def _follow_engine(self, plan: LayerPlan, engine: RunningEngine, now: float) -> None:
        is_another = engine != self._engine.engine
        self._engine.follow(engine, now)
        if is_another:
            self._at_rest = at_rest(plan.hints, engine.layers)
            # The new engine has opened the pin to all users, and has threads of its own.
            self._dues = _Dues(table=self._dues.table)

    def _is_table_due(self, now: float) -> bool:
        """Whether the plan is new, or cgroups are and the pause after the last write is over."""
        has_news = self._kernel.cgroup_events != self._events_seen
        return self._is_table_old or (has_news and now >= self._dues.table)

    def _set_table(self, plan: LayerPlan) -> None:
        """Write the table for the plan and the present cgroups."""
        events = self._kernel.cgroup_events
        if events != self._events_seen:
            self._cgroups.refresh()
        self._placed = place_cgroups(plan, self._cgroups.inodes)
        self._table = table = build_table(plan, self._placed)
        self._kernel.set_table(table.policies, table.processes, table.default_hint)
        self._events_seen, self._is_table_old, self._is_table_new = events, False, True
        missing = [scope.text for scope in self._placed.missing[:MOST_UNRESOLVED]]
        self.state = evolve(self.state, unresolved=tuple(missing))

    def _walk(self, plan: LayerPlan, now: float) -> tuple[Sequence[ThreadRecord], bool]:
        """Walk and decide. Return the selected threads, and whether any decision was made."""
        walked = self._kernel.walk(engine=self._engine.record)
        own = frozenset((os.getpid(), *self._engine.engine.pids))
        content, is_whole = self._kernel.content(), self._is_table_new
        threads = [t for t in pick(content, self._wanted(own, now)) if not t.is_kernel]
        classified_here = self._table.judged_here
        judged = [t for t in threads if t.cgroup_id in classified_here or t.tgid in own]
        targets = self._judge.targets(plan, self._placed, judged, own)
        decisions = [*hint_decisions(plan, targets), *withdrawals(threads, own, classified_here)]
        self._kernel.decide(decisions)
        wanted = (
            WantedNice(t.tid, t.start_ns, target.nice, self._placed.pod_of(t.cgroup_id))
            for t, target in targets
        )
        self._niceness.follow(wanted, now, is_all=is_whole)
        for thread in judged:
            self._settled[key_of(thread)] = now + self._judge.lasts_s(self._placed, thread)
        self._forget(content, now, is_partial=walked.dropped > 0)
        self._tell(walked)
        return threads, bool(decisions)

    def _wanted(self, own: frozenset[int], now: float) -> Wanted:
        """Return the selection of threads for this walk."""
        is_own_due, is_table_new = now >= self._dues.own, self._is_table_new
        if is_own_due:
            self._dues.own = now + OWN_EVERY_S
        self._is_table_new = False
        if is_table_new:
            self._settled.clear()
        for key in [key for key, until in self._settled.items() if until <= now]:
            del self._settled[key]
        return Wanted(
            self._at_rest,
            cgroups=self._table.judged_here,
            settled=self._settled,
            processes=own if is_own_due else frozenset(),
            decided=is_own_due or is_table_new,
        )

    def _forget(self, content: bytes, now: float, *, is_partial: bool) -> None:
        """Forget ended threads, every ``FORGET_EVERY_S`` seconds.

        Partial walks follow one another through all threads, so the walks of that time are added.
        """
        if is_partial:
            if not self._walked:
                self._dues.forget = now + FORGET_EVERY_S
            self._walked.update(tids(content))
        if now >= self._dues.forget:
            self._dues.forget = now + FORGET_EVERY_S
            alive = self._walked.union(tids(content))
            self._walked = set(tids(content)) if is_partial else set()
            self._judge.keep(alive)
            self._niceness.forget(alive, now)

    def _kick(self, threads: Sequence[ThreadRecord], now: float) -> bool:
        """Kick threads that do not follow. Return whether one needs another walk soon."""
        strays = [
            MisplacedThread(t.tid, t.start_ns, t.run_ns) for t in threads if self._is_astray(t)
        ]
        is_soon = self._kicker.look(strays, now) if self._kicker else False
        kicked = self._kicker.kicked if self._kicker else 0
        self.state = evolve(self.state, astray=len(strays), kicked=kicked)
        return is_soon

    def _is_astray(self, thread: ThreadRecord) -> bool:
        """Whether the engine has the thread in another layer than its hint's."""
        layer = layer_name(self._layers, thread.layer)
        hinted = self._names.get(thread.hint, "")
        return bool(layer) and hinted in self._layers and layer != hinted

    def _tell(self, walked: WalkCounts) -> None:
        hooks, state = self._kernel.counted, self.state
        self.state = evolve(
            state,
            reason=self._pin_problem
            or self._engine.problem
            or self._crowded(walked)
            or self._niceness.problem
            or self._judge.problem,
            niced=self._niceness.held,
            own_nice=self._niceness.own,
            threads=walked.seen,
            steered=state.steered + walked.written,
            corrected=state.corrected + walked.corrected,
            walk_ns=walked.took_ns,
            by_hook={
                "fork": hooks.forks,
                "rename": hooks.renames,
                "exec": self._kernel.exec_count,
                "move": hooks.moves,
                "cgroup_made": hooks.births,
                "cgroup_removed": hooks.deaths,
            },
        )

    def _crowded(self, walked: WalkCounts) -> str:
        """Return what has no room in the kernel's maps, empty if everything has."""
        if walked.dropped:
            return f"{walked.dropped} threads do not fit into the records of a walk"
        if self._table.omitted:
            return (
                f"cgroups that do not fit into the kernel's table: {self._table.omitted}; "
                "the walks classify their threads"
            )
        return ""

    def _fail(self, reason: str) -> None:
        if reason != self.state.reason:
            log.error("steering_failed", reason=reason)
        self.state = evolve(self.state, reason=reason)
        self._count_failure()

    def _count_failure(self) -> None:
        self.state = evolve(self.state, failures=self.state.failures + 1)

    def _look_after_pin(self, now: float) -> None:
        """Repair the pin every ``PIN_EVERY_S`` seconds, because the next engine needs it."""
        if now < self._dues.pin:
            return
        self._dues.pin = now + PIN_EVERY_S
        try:
            self._ensure_pin()
            self._pin_problem = ""
        except MachineError as error:
            self._pin_problem = str(error)
            self._fail(self._pin_problem)

    def _ensure_pin(self) -> None:
        """Pin the map if it is not pinned for us alone. Raise MachineError if that fails."""
        self._pin.ensure(self._kernel.pin, self._count_failure)
