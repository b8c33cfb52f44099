"""The conditions under which the engine must not run, in order of precedence."""

from collections.abc import Iterator

from attrs import frozen

from temper_core.records.snapshots import Mode, SafeModeReason
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.scheduler.change.plan_book import PlanBook
from temper_core.scheduler.failure.recovery import Recovery
from temper_core.scheduler.host.kernel import SchedExt
from temper_core.scheduler.preflight.preflight import NO_SCHED_EXT, Hold

NOT_ASKED = "not_asked"
NO_PLAN = "no_plan"


@frozen
class Holds:
    """All sources of holds. ``enforce`` is the operator's setting."""

    enforce: bool
    kernel: SchedExt
    requests: SafeModeRequests
    plans: PlanBook
    recovery: Recovery

    def first(self, now: float) -> Hold | None:
        """Return the first hold in effect at *now*, None if the engine may run."""
        return next(self._all(now), None)

    def _all(self, now: float) -> Iterator[Hold]:
        if not self.enforce:
            yield Hold(Mode.OBSERVE_ONLY, NOT_ASKED, "[scheduler] enforce is false")
        if not self.kernel.is_supported:
            yield Hold(Mode.OBSERVE_ONLY, NO_SCHED_EXT, f"{self.kernel.root} is missing")
        active = self.requests.active()
        if active:
            reasons = "; ".join(f"{name}: {request.reason}" for name, request in active.items())
            yield Hold(Mode.SAFE_MODE, SafeModeReason.REQUESTED, reasons)
        if self.plans.wanted is None:
            yield Hold(Mode.OBSERVE_ONLY, NO_PLAN, "no plan has been made yet")
        if self.plans.target() is None:
            yield Hold(Mode.SAFE_MODE, SafeModeReason.INVALID_PLAN, self.plans.problem)
        waiting = self.recovery.hold(now)
        if waiting is not None:
            yield waiting
