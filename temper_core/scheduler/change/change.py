"""The engine change under way: its cause, its method, and its window on the stock scheduler."""

import structlog
from attrs import define

from temper_core.scheduler.counters import ChangeMethod, EngineCounters
from temper_core.scheduler.engine_process.engine_run import EngineRun
from temper_core.scheduler.failure.diagnosis import Diagnosis

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

PLAN = "plan"
ROLLBACK = "rollback"
RECOVERY = "recovery"


@define
class EngineChange:
    """The reason for the next attachment, and its counters.

    ``stock_since`` is when the kernel dropped the engine before it, None if that was not planned.
    ``diagnosis`` is that of the last engine that ended without a request.
    """

    counters: EngineCounters
    cause: str = "start"
    way: ChangeMethod = ChangeMethod.COLD
    why_cold: str = ""
    stock_since: float | None = None
    diagnosis: Diagnosis | None = None

    def planned(self, way: ChangeMethod, why_cold: str = "") -> None:
        """Record that another plan comes into force by the method *way*."""
        self.cause, self.way, self.why_cold = PLAN, way, why_cold

    def started(self) -> None:
        """Count the engine that was started, or let through its gate, for this change."""
        self.counters.reloads[self.cause] += 1

    def attached(self, run: EngineRun, now: float) -> None:
        """Count the window that *run* ends, now that it is proven."""
        if run.attach_count > 1:  # it restarted in place, as after CPU hotplug
            self.counters.reloads["hotplug"] += 1
        if self.stock_since is not None and self.cause in (PLAN, ROLLBACK):
            window_s = (run.enabled_at or now) - self.stock_since
            self.counters.note_window(window_s, self.way)
            log.info("engine_changed", way=self.way.value, stock_s=round(window_s, 4))
        if self.cause == PLAN:
            self.counters.swaps[self.way.value] += 1
        self.stock_since = None
        self.begin_cold(RECOVERY)

    def failed(self, diagnosis: Diagnosis, *, may_roll_back: bool) -> None:
        """Count an engine that ended without a request or did not attach."""
        self.diagnosis = diagnosis
        kind = diagnosis.kind.value
        self.counters.ejections[kind] += 1
        if self.way is ChangeMethod.WARM:  # its gate was opened, but it was never proven
            self.counters.swap_failures[kind] += 1
        self.begin_cold(ROLLBACK if may_roll_back else RECOVERY)

    def heir_failed(self, diagnosis: Diagnosis) -> None:
        """Count an heir that ended behind its gate."""
        self.diagnosis = diagnosis
        self.counters.swap_failures[diagnosis.kind.value] += 1

    def begin_cold(self, cause: str) -> None:
        """Record that the next engine starts while none runs, because of *cause*."""
        self.cause, self.way, self.why_cold = cause, ChangeMethod.COLD, ""
