"""The life cycle: which plan the kernel should run, and the steps that bring it into force.

It is a polled state machine. ``step`` checks safe-mode requests, the engines and the pending plan,
does at most one thing that takes milliseconds, and returns when to call it again. So a request for
safe mode takes effect while an engine is still loading. A changed plan takes effect by a warm swap
(``succession.py``), or by a cold restart if no swap is possible.
"""

import time

import structlog

from temper_core.engine.stats import EngineStats
from temper_core.errors import EngineError
from temper_core.records.checks import Check
from temper_core.records.plans import Generation, LayerPlan
from temper_core.records.snapshots import Mode, Status
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.scheduler.change.change import EngineChange
from temper_core.scheduler.change.plan_book import PlanBook, did_not_attach
from temper_core.scheduler.change.plan_changes import PlanChanges
from temper_core.scheduler.change.reload_policy import ReloadPolicy
from temper_core.scheduler.change.starter import Starter
from temper_core.scheduler.change.succession import Succession, SuccessionError
from temper_core.scheduler.clocks import Clocks
from temper_core.scheduler.counters import ChangeMethod, EngineCounters
from temper_core.scheduler.engine_process.access import EngineAccess
from temper_core.scheduler.engine_process.engine_run import VERIFY_S, EnginePhase, EngineRun
from temper_core.scheduler.engine_process.stop_ladder import KILL_S
from temper_core.scheduler.failure.backoff import backoff_for
from temper_core.scheduler.failure.diagnosis import Diagnosis, EndKind
from temper_core.scheduler.failure.recovery import Recovery
from temper_core.scheduler.hint_map import HintMap
from temper_core.scheduler.holds import Holds
from temper_core.scheduler.host.kernel import SchedExt
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.preflight.preflight import Hold, verdict
from temper_core.scheduler.status import StatusDetails, tell
from temper_core.settings import Settings

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

WINDOW_S = 0.0015
"""The period of steps while a swap has the node on the stock scheduler, or is about to."""
SOON_S = 0.05
STEADY_S = 0.5
REST_S = 20.0
"""The period of steps while no engine is needed: changes of that wake the agent anyway."""


class Scheduler:
    """Runs the engine for the wanted plan, or publishes why it must not run.

    Any thread may read ``status``, ``generation``, ``counters`` and ``swap_obstacle``. Everything
    else belongs to the main thread, which spawns the engine. A steered plan needs *hint_map*.
    """

    def __init__(
        self,
        settings: Settings,
        requests: SafeModeRequests,
        *,
        roots: Roots | None = None,
        access: EngineAccess | None = None,
        clocks: Clocks | None = None,
        hint_map: HintMap | None = None,
    ) -> None:
        roots = roots or Roots.of(settings)
        limits = settings.scheduler
        self.counters = EngineCounters()
        self._settings = settings
        self._requests = requests
        self._clocks = clocks or Clocks()
        kernel = SchedExt(roots.sched_ext)
        self._starter = Starter(settings, roots, access or EngineAccess(), hint_map)
        self._succession = Succession(self._starter, kernel)
        self._plans = PlanBook()
        self._policy = ReloadPolicy(limits.quiet_s, limits.min_interval_s, limits.reloads_per_hour)
        self._change = EngineChange(self.counters)
        chance = self._clocks.chance
        self._recovery = Recovery(backoff_for(limits, chance), limits.recheck_s)
        self._holds = Holds(limits.enforce, kernel, requests, self._plans, self._recovery)
        self._changes = PlanChanges(
            starter=self._starter,
            succession=self._succession,
            plans=self._plans,
            policy=self._policy,
            change=self._change,
            backoff=backoff_for(limits, chance),
            recheck_s=limits.recheck_s,
        )
        self._run: EngineRun | None = None
        self._plan_changed = False
        self._is_tidy = False
        self._was_requested = bool(requests.active())
        self._next_file_look = 0.0
        self._status = Status(Mode.OBSERVE_ONLY, "no_plan", since=self._clocks.wall())

    @property
    def status(self) -> Status:
        """The state as of the last step."""
        return self._status

    @property
    def generation(self) -> Generation | None:
        """The generation that is attached and proven, None while the stock scheduler runs."""
        run = self._run
        return run.generation if run is not None and run.phase is EnginePhase.ATTACHED else None

    @property
    def stats(self) -> EngineStats | None:
        """The attached engine's last statistics."""
        run = self._run
        return run.stats.latest if run is not None and run.phase is EnginePhase.ATTACHED else None

    @property
    def engine_pid(self) -> int | None:
        """The process id of the engine that is or will be attached, until it has ended."""
        return self._run.process.pid if self._run is not None else None

    @property
    def engine_pids(self) -> tuple[int, ...]:
        """The process ids of all engines: the current one, the next and those that are ending."""
        own = (self._run,) if self._run is not None else ()
        return tuple(run.process.pid for run in (*own, *self._succession.runs))

    @property
    def swap_obstacle(self) -> str:
        """Why the next engine cannot load beside the running one, empty if it can."""
        return self._starter.swap_obstacle()

    @property
    def preflight(self) -> tuple[Check, ...]:
        """The checks before the last start or change."""
        return self._starter.checks

    @property
    def diagnosis(self) -> Diagnosis | None:
        """Why the last engine ended that was not requested to."""
        return self._change.diagnosis

    @property
    def refusal(self) -> str:
        """Why the wanted plan is not the one that runs or would run, empty if it is."""
        return self._plans.problem

    def submit(self, plan: LayerPlan) -> None:
        """Make *plan* the wanted plan. It takes effect in later steps if its configuration differs.

        A plan that breaks a rule of the engine is refused, and the running one stays.
        """
        candidate = self._starter.candidate(plan)
        if not self._plans.submit(candidate):
            return
        self._plan_changed = True
        self._recovery.plan_changed()
        if candidate.problem:
            log.error("plan_refused", problem=candidate.problem)

    def look_for_requests(self) -> None:
        """Poll the host's safe-mode file in the next step, whether or not a poll is due."""
        self._next_file_look = 0.0

    def step(self, now: float) -> float:
        """Advance everything to *now* (monotonic seconds).

        Returns the seconds after which the next step is due at the latest.
        """
        self._look_around(now)
        if self._run is not None:
            self._follow(self._run, now)
        failed_heir = self._succession.step(now)
        if failed_heir is not None:
            self._changes.heir_failed(failed_heir, self._run, now)
        self._act(self._holds.first(now), now)
        self._publish(now)
        return self._wanted_in_s(now)

    def close(self) -> None:
        """End every engine by the whole stop ladder. Blocks no longer than its deadlines."""
        clock = self._clocks.monotonic
        latest = clock() + self._settings.scheduler.stop_deadline_s + 2 * (KILL_S + VERIFY_S)
        self._succession.drop("the agent ends", clock())
        if self._run is not None:
            self._run.stop(clock())
            self._succession.dismiss(self._run)
        had_engines = not self._succession.is_clear
        while not self._succession.is_clear and clock() < latest:
            self._succession.step(clock())
            time.sleep(SOON_S / 5)
        if had_engines:
            log.info("engine_stopped", has_ended=self._succession.is_clear)
        self._run = None
        if self._is_tidy and self._succession.is_clear:
            self._starter.tidy()
        self._starter.close()

    def _look_around(self, now: float) -> None:
        if not self._is_tidy:
            self._starter.tidy()
            self._is_tidy = True
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
        """Drop all failures: an operator has turned safe mode on and off."""
        self._recovery.forget()
        self._changes.forgive()
        self._change.begin_cold("safe_mode")

    def _act(self, hold: Hold | None, now: float) -> None:
        run, succession = self._run, self._succession
        if hold is not None:
            succession.drop(hold.detail, now)
            if run is not None:
                run.stop(now)
        elif succession.is_handing_over:
            self._hand_over(now)
        elif run is None:
            succession.drop("the engine it was to replace has ended", now)
            if succession.is_clear:
                self._start(now)
        elif run.phase is EnginePhase.ATTACHED:
            self._changes.consider(run, now)
        else:
            succession.drop("the engine it was to replace is not attached any more", now)

    def _start(self, now: float) -> None:
        """Start an engine for the plan that should run, unless preflight forbids it."""
        hold = verdict(self._starter.preflight())
        if hold is not None:
            self._recovery.look_again(hold, now)
            return
        if self._plans.wanted is not None:
            self._plans.wanted = self._starter.checked(self._plans.wanted)
        target = self._plans.target()
        if target is None:
            return  # the check refused the only plan, which the next hold reports
        self._plans.started(target)
        self._change.started()
        if self._succession.is_clear:
            self._starter.tidy()
        try:
            self._run = self._starter.start(target, now)
        except EngineError as error:
            self._fail(Diagnosis(EndKind.LAUNCH_FAILED, str(error)), target, now, attached=False)
            return
        log.info("engine_started", generation=target.number, cause=self._change.cause)

    def _hand_over(self, now: float) -> None:
        try:
            heir = self._succession.hand_over(now)
        except SuccessionError as error:
            diagnosis = Diagnosis(EndKind.LAUNCH_FAILED, str(error))
            self._fail(diagnosis, error.generation, now, attached=False)
            return
        if heir is None:
            return
        self._run = heir
        self._change.planned(ChangeMethod.WARM)
        self._change.stock_since = heir.predecessor.released_at if heir.predecessor else now
        self._change.started()
        log.info("gate_opened", generation=heir.generation.number)

    def _follow(self, run: EngineRun, now: float) -> None:
        before = run.phase
        run.step(now)
        if run.phase is EnginePhase.ENDED:
            self._run = None
            if run.enabled_at is not None:
                self._change.stock_since = run.released_at
            self._ended(run, now)
        elif before is not run.phase and run.phase is EnginePhase.ATTACHED:
            self._plans.proven(run.generation)
            self._change.attached(run, now)
            log.info("engine_attached", generation=run.generation.number)
        elif before is EnginePhase.ATTACHED and run.phase is EnginePhase.LOADING:
            log.warning("engine_detached", generation=run.generation.number)

    def _ended(self, run: EngineRun, now: float) -> None:
        if run.diagnosis is None:
            log.info("engine_stopped", generation=run.generation.number)
            return
        attached = run.attached_at is not None
        self._fail(run.diagnosis, run.generation, now, attached=attached)

    def _fail(
        self, diagnosis: Diagnosis, generation: Generation, now: float, *, attached: bool
    ) -> None:
        """Count an unrequested end, and decide whether the last good plan is used instead."""
        may_roll_back = not attached and self._plans.failed(generation, diagnosis)
        self._change.failed(diagnosis, may_roll_back=may_roll_back)
        log.error(
            "engine_failed",
            kind=diagnosis.kind.value,
            why=diagnosis.summary,
            what_to_do=diagnosis.remedy,
            was_attached=attached,
        )
        again_at = self._recovery.failed(diagnosis, now, may_roll_back=may_roll_back)
        if may_roll_back and (not diagnosis.blames_the_plan or self._recovery.is_exhausted(now)):
            self._plans.postpone(did_not_attach(generation, diagnosis), again_at)

    def _publish(self, now: float) -> None:
        """Publish the status after everything this step did."""
        run, succession = self._run, self._succession
        facts = StatusDetails(
            hold=self._holds.first(now),
            heir=succession.heir,
            is_handing_over=succession.is_handing_over,
            later=self.refusal or self._policy.why_later(now),
            cold=self._change.why_cold,
        )
        status = tell(run, facts)
        old = self._status
        has_changed = (status.mode, status.reason) != (old.mode, old.reason)
        self._status = Status(
            mode=status.mode,
            reason=status.reason,
            detail=status.detail,
            generation=run.generation.number if run is not None else 0,
            engine=self._starter.engine_name,
            since=self._clocks.wall() if has_changed else old.since,
        )
        if has_changed:
            mode = status.mode.value
            log.info("mode_changed", mode=mode, reason=status.reason, detail=status.detail)

    def _wanted_in_s(self, now: float) -> float:
        """Return the seconds until the next step that no event may wait longer for."""
        run, succession = self._run, self._succession
        if succession.is_handing_over or (run is not None and run.is_let_through):
            return WINDOW_S
        if not succession.is_clear or (run is not None and run.phase is not EnginePhase.ATTACHED):
            return SOON_S
        if self._status.mode is Mode.RELOADING:
            return 0.0
        moments = [now + (STEADY_S if run is not None else REST_S)]
        if not self._requests.is_file_heard:
            moments.append(self._next_file_look)
        reload_at = self._policy.due_at()
        if run is not None and reload_at is not None:
            moments.append(reload_at)
        if run is None and self._recovery.until is not None:
            moments.append(self._recovery.until)
        return max(0.0, min(moments) - now)
