"""The life cycle: which plan the kernel should run, and every step between wanting and having it.

A polled state machine. ``step`` looks at safe-mode requests, the engine and the pending plan, does
at most one thing that takes milliseconds, and says when it wants to be called again; so a request
for safe mode takes effect while an engine is still loading. How a plan becomes active is known to
``_start`` and ``_reload`` alone.
"""

import random
import time
from collections.abc import Callable, Iterator

import structlog
from attrs import evolve, frozen

from temper_core.engine.stats import EngineStats
from temper_core.errors import EngineError
from temper_core.records.plans import Generation, LayerPlan
from temper_core.records.snapshots import Mode, SafeModeReason, Status
from temper_core.scheduler.backoff import Backoff
from temper_core.scheduler.checks import Check
from temper_core.scheduler.counters import Counters
from temper_core.scheduler.diagnosis import Diagnosis, EndKind
from temper_core.scheduler.engine_access import EngineAccess
from temper_core.scheduler.engine_run import KILL_S, VERIFY_S, EngineRun, Phase
from temper_core.scheduler.kernel import SchedExt
from temper_core.scheduler.plan_book import PlanBook, same
from temper_core.scheduler.preflight import NO_SCHED_EXT, Hold, verdict
from temper_core.scheduler.recovery import Recovery
from temper_core.scheduler.reload_policy import ReloadPolicy
from temper_core.scheduler.roots import Roots
from temper_core.scheduler.safe_mode import SafeModeRequests
from temper_core.scheduler.starter import Starter
from temper_core.settings import Settings

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

SOON_S = 0.05
STEADY_S = 0.5
NOT_ASKED = "not_asked"
NO_PLAN = "no_plan"
IN_PLANNED_CHANGES = ("plan", "rollback")


@frozen
class Clocks:
    """Time and chance. ``monotonic`` serves ``close`` alone; ``step`` is told the time."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    chance: Callable[[], float] = random.random


class Scheduler:
    """Runs the engine for the wanted plan, or knows why it must not.

    ``status``, ``generation`` and ``counters`` may be read from any thread; all else belongs to
    the main thread, where the engine must be spawned. ``preflight`` and ``diagnosis`` are those
    of the last start and the last unasked end.
    """

    def __init__(
        self,
        settings: Settings,
        requests: SafeModeRequests,
        *,
        roots: Roots | None = None,
        access: EngineAccess | None = None,
        clocks: Clocks | None = None,
    ) -> None:
        roots = roots or Roots()
        limits = settings.scheduler
        self.counters = Counters()
        self.preflight: tuple[Check, ...] = ()
        self.diagnosis: Diagnosis | None = None
        self._settings = settings
        self._requests = requests
        self._clocks = clocks or Clocks()
        self._kernel = SchedExt(roots.sched_ext)
        self._starter = Starter(settings, roots, access or EngineAccess())
        self._plans = PlanBook()
        self._policy = ReloadPolicy(limits.quiet_s, limits.min_interval_s, limits.reloads_per_hour)
        chance = self._clocks.chance
        backoff = Backoff(
            limits.backoff_s, limits.backoff_limit_s, limits.crash_budget, chance=chance
        )
        self._recovery = Recovery(backoff, limits.recheck_s)
        self._run: EngineRun | None = None
        self._cause = "start"
        self._stock_since: float | None = None
        self._plan_changed = False
        self._was_requested = bool(requests.active())
        self._next_file_look = 0.0
        self._status = Status(Mode.OBSERVE_ONLY, NO_PLAN, since=self._clocks.wall())

    @property
    def status(self) -> Status:
        """The state as of the last step."""
        return self._status

    @property
    def generation(self) -> Generation | None:
        """The plan that is attached and proven; None while the stock scheduler runs."""
        run = self._run
        return run.generation if run is not None and run.phase is Phase.ATTACHED else None

    @property
    def stats(self) -> EngineStats | None:
        """The attached engine's last statistics."""
        run = self._run
        return run.stats.latest if run is not None and run.phase is Phase.ATTACHED else None

    @property
    def engine_pid(self) -> int | None:
        """The engine's process id, from its start until it has ended."""
        return self._run.process.pid if self._run is not None else None

    @property
    def refusal(self) -> str:
        """Why the wanted plan is not the one that runs, or would run; empty where it is."""
        return self._plans.problem

    def submit(self, plan: LayerPlan) -> None:
        """Want *plan*; it takes effect in later steps, unless the engine could not tell it apart.

        A plan that breaks a rule of the engine is refused, and what runs stays.
        """
        candidate = self._starter.candidate(plan)
        if not self._plans.submit(candidate):
            return
        self._plan_changed = True
        self._recovery.plan_changed()
        if candidate.problem:
            log.error("plan_refused", problem=candidate.problem)

    def step(self, now: float) -> float:
        """Move everything on by what *now* (monotonic seconds) calls for.

        Returns in how many seconds at the latest the next step is wanted.
        """
        self._look_around(now)
        if self._run is not None:
            self._follow(self._run, now)
        self._act(self._hold(now), now)
        self._publish(now)
        return self._wanted_in_s(now)

    def close(self) -> None:
        """End the engine by the whole stop ladder; blocks, but no longer than its deadlines."""
        run, clock = self._run, self._clocks.monotonic
        if run is not None:
            latest = clock() + self._settings.scheduler.stop_deadline_s + 2 * (KILL_S + VERIFY_S)
            run.stop(clock())
            while run.phase is not Phase.ENDED and clock() < latest:
                run.step(clock())
                time.sleep(SOON_S / 5)
            log.info("engine_stopped", has_ended=run.phase is Phase.ENDED)
        self._run = None
        self._starter.close()

    def _look_around(self, now: float) -> None:
        self._plans.look_at_clock(now)
        if now >= self._next_file_look:
            self._requests.poll_file()
            self._next_file_look = now + self._settings.safe_mode.poll_s
        is_requested = bool(self._requests.active())
        if self._was_requested and not is_requested:
            self._start_afresh()
        self._was_requested = is_requested
        if self._plan_changed:
            self._plan_changed = False
            self._policy.changed(now)

    def _start_afresh(self) -> None:
        """Forget what went wrong: an operator has been through safe mode and left it."""
        self._recovery.forget()
        self._plans.forgive()
        self._cause = "safe_mode"

    def _hold(self, now: float) -> Hold | None:
        """Return why the engine must not run now, first cause first; None when it may."""
        return next(self._holds(now), None)

    def _holds(self, now: float) -> Iterator[Hold]:
        if not self._settings.scheduler.enforce:
            yield Hold(Mode.OBSERVE_ONLY, NOT_ASKED, "[scheduler] enforce is false")
        if not self._kernel.is_supported:
            yield Hold(Mode.OBSERVE_ONLY, NO_SCHED_EXT, f"{self._kernel.root} is missing")
        standing = self._requests.active()
        if standing:
            told = "; ".join(f"{name}: {request.reason}" for name, request in standing.items())
            yield Hold(Mode.SAFE_MODE, SafeModeReason.REQUESTED, told)
        if self._plans.wanted is None:
            yield Hold(Mode.OBSERVE_ONLY, NO_PLAN, "no plan has been made yet")
        if self._plans.target() is None:
            yield Hold(Mode.SAFE_MODE, SafeModeReason.INVALID_PLAN, self.refusal)
        waiting = self._recovery.hold(now)
        if waiting is not None:
            yield waiting

    def _act(self, hold: Hold | None, now: float) -> None:
        run = self._run
        if hold is not None:
            if run is not None:
                run.stop(now)
        elif run is None:
            self._start(now)
        elif run.phase is Phase.ATTACHED:
            self._reload_if_due(run, now)

    def _start(self, now: float) -> None:
        """Start an engine for the plan that should run, unless preflight forbids it."""
        self.preflight = self._starter.preflight()
        hold = verdict(self.preflight)
        if hold is not None:
            self._recovery.look_again(hold, now)
            return
        if self._plans.wanted is not None:
            self._plans.wanted = self._starter.checked(self._plans.wanted)
        target = self._plans.target()
        if target is None:
            return  # the check refused the only plan there is; the next hold says so
        self._plans.started(target)
        self.counters.reloads[self._cause] += 1
        try:
            self._run = self._starter.start(target, now)
        except EngineError as error:
            self._fail(Diagnosis(EndKind.LAUNCH_FAILED, str(error)), target, now, attached=False)
            return
        log.info("engine_started", generation=target.number, cause=self._cause)

    def _reload_if_due(self, run: EngineRun, now: float) -> None:
        target = self._plans.target()
        if target is None or same(target.config, run.generation.config):
            self._policy.settled()
            if target is not None:
                run.generation = evolve(run.generation, plan=target.plan)
            return
        due = self._policy.due_at()
        if due is None:
            self._policy.changed(now)
        elif due <= now:
            self._reload(run, now)

    def _reload(self, run: EngineRun, now: float) -> None:
        """Replace the engine cold: stop it now, and the next plan starts once it has ended."""
        self._policy.reloaded(now)
        self._cause = "plan"
        log.info("reload_begun", generation=run.generation.number)
        run.stop(now)

    def _follow(self, run: EngineRun, now: float) -> None:
        before = run.phase
        run.step(now)
        if run.phase is Phase.ENDED:
            self._run = None
            if run.enabled_at is not None:
                self._stock_since = run.released_at
            self._ended(run, now)
        elif before is not run.phase and run.phase is Phase.ATTACHED:
            self._attached(run, now)
        elif before is Phase.ATTACHED and run.phase is Phase.LOADING:
            log.warning("engine_detached", generation=run.generation.number)

    def _attached(self, run: EngineRun, now: float) -> None:
        if run.attach_count > 1:  # it restarted in place, as it does over CPU hotplug
            self.counters.reloads["hotplug"] += 1
        self._plans.proven(run.generation)
        if self._stock_since is not None and self._cause in IN_PLANNED_CHANGES:
            self.counters.note_window((run.enabled_at or now) - self._stock_since)
        self._stock_since = None
        self._cause = "recovery"
        log.info("engine_attached", generation=run.generation.number, engine=self._status.engine)

    def _ended(self, run: EngineRun, now: float) -> None:
        if run.diagnosis is None:
            log.info("engine_stopped", generation=run.generation.number)
            return
        attached = run.attached_at is not None
        self._fail(run.diagnosis, run.generation, now, attached=attached)

    def _fail(
        self, diagnosis: Diagnosis, generation: Generation, now: float, *, attached: bool
    ) -> None:
        """Count an unasked end, and see whether the last good plan may stand in."""
        self.diagnosis = diagnosis
        kind = diagnosis.kind.value
        self.counters.ejections[kind] += 1
        log.error("engine_failed", kind=kind, why=diagnosis.summary, was_attached=attached)
        may_roll_back = not attached and self._plans.failed(generation, diagnosis)
        self._cause = "rollback" if may_roll_back else "recovery"
        again_at = self._recovery.failed(diagnosis, now, may_roll_back=may_roll_back)
        if may_roll_back and (not diagnosis.blames_the_plan or self._recovery.is_exhausted(now)):
            self._plans.postpone(generation, diagnosis, again_at)

    def _publish(self, now: float) -> None:
        """Tell the state as it is after everything this step did."""
        hold, run = self._hold(now), self._run
        mode, reason, detail = self._told(hold, run, now)
        old = self._status
        has_changed = (mode, reason) != (old.mode, old.reason)
        self._status = Status(
            mode=mode,
            reason=str(reason),
            detail=detail,
            generation=run.generation.number if run is not None else 0,
            engine=self._starter.engine_name,
            since=self._clocks.wall() if has_changed else old.since,
        )
        if has_changed:
            log.info("mode_changed", mode=mode.value, reason=str(reason), detail=detail)

    def _told(self, hold: Hold | None, run: EngineRun | None, now: float) -> tuple[Mode, str, str]:
        if hold is not None:
            still = f" ({run.problem or 'the engine is still stopping'})" if run else ""
            return hold.mode, hold.reason, hold.detail + still
        if run is None:
            return Mode.RELOADING, "", "between two engines"
        if run.diagnosis is not None:
            return Mode.SAFE_MODE, SafeModeReason.EJECTED, run.diagnosis.summary
        if run.phase is Phase.ATTACHED:
            return Mode.ENFORCING, "", self.refusal or self._policy.why_later(now)
        if run.phase is Phase.LOADING:
            return Mode.RELOADING, "", f"loading generation {run.generation.number}: {run.missing}"
        return Mode.RELOADING, "", f"stopping generation {run.generation.number}"

    def _wanted_in_s(self, now: float) -> float:
        """Return how long nothing can happen that a later step would notice too late."""
        run = self._run
        if run is not None and run.phase is not Phase.ATTACHED:
            return SOON_S
        if self._status.mode is Mode.RELOADING:
            return 0.0
        moments = [now + STEADY_S, self._next_file_look]
        due = self._policy.due_at()
        if run is not None and due is not None:
            moments.append(due)
        if run is None and self._recovery.until is not None:
            moments.append(self._recovery.until)
        return max(0.0, min(moments) - now)
