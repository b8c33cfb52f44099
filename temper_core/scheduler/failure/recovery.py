"""Recovery after a failure: wait, check again, or give up until an operator intervenes."""

import structlog
from attrs import frozen

from temper_core.records.snapshots import Mode, SafeModeReason
from temper_core.scheduler.failure.backoff import Backoff
from temper_core.scheduler.failure.diagnosis import Diagnosis, EndKind
from temper_core.scheduler.preflight.preflight import Hold

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Pause:
    """A hold that ends by itself at a moment of the monotonic clock."""

    hold: Hold
    until: float


class Recovery:
    """Holds the engine back after failures."""

    def __init__(self, backoff: Backoff, recheck_s: float) -> None:
        self._backoff = backoff
        self._recheck_s = recheck_s
        self._pause: Pause | None = None
        self._given_up = ""
        self._is_the_plans_fault = False

    @property
    def until(self) -> float | None:
        """The moment the present pause ends by itself, None without one."""
        return self._pause.until if self._pause is not None and not self._given_up else None

    def hold(self, now: float) -> Hold | None:
        """Return the hold in effect at *now*, None if the engine may run."""
        if self._given_up:
            return Hold(Mode.SAFE_MODE, SafeModeReason.CRASH_LOOP, self._given_up)
        if self._pause is not None and now < self._pause.until:
            return self._pause.hold
        return None

    def look_again(self, hold: Hold, now: float) -> None:
        """Pause for *hold* until the next check, ``recheck_s`` later."""
        log.warning("preflight_failed", reason=str(hold.reason), detail=hold.detail)
        self._pause = Pause(hold, now + self._recheck_s)

    def failed(self, diagnosis: Diagnosis, now: float, *, may_roll_back: bool) -> float:
        """Record a failed start or an ejection. Return the moment the failed plan may be retried.

        A foreign scheduler that attached first does not count as a failure. *may_roll_back* means
        that a plan that worked is available and starts without a wait. The returned moment then
        includes the time until the hour's budget allows another failure.
        """
        if diagnosis.kind is EndKind.FOREIGN_SCHEDULER:
            reason = SafeModeReason.FOREIGN_SCHEDULER
            self.look_again(Hold(Mode.SAFE_MODE, reason, diagnosis.summary), now)
            return now + self._recheck_s
        self._backoff.failed(now)
        self._is_the_plans_fault = diagnosis.blames_the_plan
        is_exhausted = self._backoff.is_exhausted(now)
        delay_s = self._backoff.limit_s if is_exhausted else self._backoff.delay_s(now)
        if may_roll_back:
            return now + max(delay_s, self._backoff.until_budget_s(now))
        if is_exhausted:
            self._given_up = self._why_given_up(diagnosis, now)
            log.error("crash_budget_used_up", why=self._given_up)
        detail = f"{diagnosis.summary}; the next try is in {delay_s:.0f} s"
        self._pause = Pause(Hold(Mode.SAFE_MODE, SafeModeReason.EJECTED, detail), now + delay_s)
        return now + delay_s

    def is_exhausted(self, now: float) -> bool:
        """Return whether the hour's budget of failures is used up."""
        return self._backoff.is_exhausted(now)

    def plan_changed(self) -> None:
        """Allow one more try after the pause if the plan was the cause of the failure.

        Failures stay counted. Another plan does not cure other causes of a used-up budget.
        """
        if self._is_the_plans_fault:
            self._given_up = ""

    def forget(self) -> None:
        """Drop all failures and pauses: an operator has turned safe mode on and off."""
        self._backoff.forget()
        self._given_up = ""
        self._pause = None

    def _why_given_up(self, diagnosis: Diagnosis, now: float) -> str:
        return (
            f"{self._backoff.recent(now)} failures within an hour, the last: {diagnosis.summary}; "
            "turn safe mode on and off to try again"
        )
