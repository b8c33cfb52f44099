"""Changes of the plan in force: when they happen, by which method, and how failures are handled."""

import structlog
from attrs import define, evolve

from temper_core.errors import EngineError
from temper_core.records.plans import Generation
from temper_core.scheduler.change.change import ROLLBACK, EngineChange
from temper_core.scheduler.change.plan_book import PlanBook, did_not_attach, same
from temper_core.scheduler.change.reload_policy import ReloadPolicy
from temper_core.scheduler.change.starter import Starter
from temper_core.scheduler.change.succession import Succession
from temper_core.scheduler.counters import ChangeMethod
from temper_core.scheduler.engine_process.engine_run import EnginePhase, EngineRun
from temper_core.scheduler.engine_process.gate import GateError
from temper_core.scheduler.failure.backoff import Backoff
from temper_core.scheduler.failure.diagnosis import Diagnosis, EndKind
from temper_core.scheduler.preflight.preflight import verdict

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define
class PlanChanges:
    """Replaces an attached engine whose plan is not the one that should run.

    It uses an heir beside the engine, or a cold restart if no heir is possible. No engine is
    stopped for one that preflight forbids to start.
    """

    starter: Starter
    succession: Succession
    plans: PlanBook
    policy: ReloadPolicy
    change: EngineChange
    backoff: Backoff
    recheck_s: float

    def consider(self, run: EngineRun, now: float) -> None:
        """Take the next step towards the wanted plan while *run* is attached."""
        target, heir = self.plans.target(), self.succession.heir
        if target is None or same(target.config, run.generation.config):
            self.policy.settled()
            self.succession.drop("the plan in force is wanted again", now)
            if target is not None:
                run.generation = evolve(run.generation, plan=target.plan)
        elif heir is None:
            if self._is_due(now) and self.succession.is_clear:
                self._replace(run, target, now)
        else:
            self._follow(heir, run, target, now)

    def heir_failed(self, heir: EngineRun, run: EngineRun | None, now: float) -> None:
        """Handle an heir that ended behind its gate. An attached *run* is not affected."""
        if self.succession.is_handing_over:
            self.succession.drop("it has ended", now)
            self.change.begin_cold(ROLLBACK)
        if heir.gate_refusal:
            self.starter.gate_refusal = heir.gate_refusal
            if run is not None and run.phase is EnginePhase.ATTACHED:
                self._replace_cold(run, heir.gate_refusal, now)
        elif heir.diagnosis is not None:
            self._failed(heir.diagnosis, heir.generation, now)

    def forgive(self) -> None:
        """Drop all failures: an operator has turned safe mode on and off."""
        self.backoff.forget()
        self.starter.gate_refusal = ""
        self.plans.forgive()

    def _is_due(self, now: float) -> bool:
        moment = self.policy.due_at()
        if moment is None:
            self.policy.changed(now)
        return moment is not None and moment <= now

    def _follow(self, heir: EngineRun, run: EngineRun, target: Generation, now: float) -> None:
        """Let an heir at its gate take over, even if its plan is already outdated."""
        is_wanted = same(target.config, heir.generation.config)
        if is_wanted:
            self.policy.settled()
            heir.generation = evolve(heir.generation, plan=target.plan)
        if heir.phase is EnginePhase.WAITING:
            log.info("hand_over_begun", generation=run.generation.number)
            self.succession.give_way(run, now)
        elif not is_wanted and self._is_due(now) and self.succession.may_supersede():
            self.succession.drop("another plan is wanted", now)

    def _replace(self, run: EngineRun, target: Generation, now: float) -> None:
        self.policy.reloaded(now)
        hold = verdict(self.starter.preflight(run.process.pid))
        if hold is not None:
            problem = f"the next engine cannot be started: {hold.detail}"
            self.plans.postpone(problem, now + self.recheck_s)
            return
        why_cold = self.starter.swap_obstacle() or self._begin(run, target, now)
        if why_cold:
            self._replace_cold(run, why_cold, now)

    def _begin(self, run: EngineRun, target: Generation, now: float) -> str:
        """Start an heir. Return why no gate can be made, empty otherwise."""
        self.plans.started(target)
        try:
            self.succession.begin(target, run.generation, now)
        except GateError as error:
            self.starter.gate_refusal = str(error)
        except EngineError as error:
            self._failed(Diagnosis(EndKind.LAUNCH_FAILED, str(error)), target, now)
        return self.starter.gate_refusal

    def _replace_cold(self, run: EngineRun, why: str, now: float) -> None:
        """Stop the engine. The next plan starts once it has ended."""
        self.change.planned(ChangeMethod.COLD, why)
        log.info("reload_begun", generation=run.generation.number, why_cold=why)
        run.stop(now)

    def _failed(self, diagnosis: Diagnosis, generation: Generation, now: float) -> None:
        """Count a failed heir, and hold its plan back: for good if the plan was the cause."""
        self.change.heir_failed(diagnosis)
        log.error("swap_failed", kind=diagnosis.kind.value, why=diagnosis.summary)
        self.plans.failed(generation, diagnosis)
        if not diagnosis.blames_the_plan:
            self.backoff.failed(now)
            again_at = now + self.backoff.delay_s(now)
            self.plans.postpone(did_not_attach(generation, diagnosis), again_at)
