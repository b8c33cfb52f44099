"""The warm swap: the next engine loads beside the one that schedules, and takes its place.

    begin ─▶ the heir loads ─▶ it waits at its gate ─▶ give_way: the old engine is stopped
          ─▶ the kernel is free: the hints are set, the gate opens, the heir is the engine

Until ``give_way`` the engine that schedules is not affected: an heir that does not load or verify
simply ends. An heir is no reserve. If the old engine is ejected or fails by itself, the heir is
dropped too: the cause of the ejection (a stalled thread, SysRq-S, an offline CPU) may persist. An
engine that attaches again within milliseconds would undo both the back-off and an operator's SysRq.
This holds for an old engine that is being stopped for its heir, too.
"""

import structlog

from temper_core.errors import EngineError
from temper_core.records.plans import Generation
from temper_core.scheduler.change.starter import Starter
from temper_core.scheduler.engine_process.engine_run import EnginePhase, EngineRun
from temper_core.scheduler.host.kernel import SchedExt

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


RELEASE_S = 1.0
"""The longest time until the kernel is free once the old engine has ended."""


class SuccessionError(EngineError):
    """The old engine has ended and the heir may not attach. ``generation`` is the heir's."""

    def __init__(self, generation: Generation, why: str) -> None:
        self.generation = generation
        super().__init__(why)


class Succession:
    """The heir, the engine it replaces, and the engines that are still ending."""

    def __init__(self, starter: Starter, kernel: SchedExt) -> None:
        self.heir: EngineRun | None = None
        self._starter = starter
        self._kernel = kernel
        self._giving_way: EngineRun | None = None
        self._leaving: list[EngineRun] = []
        self._was_superseded = False

    @property
    def is_handing_over(self) -> bool:
        """Whether the old engine was stopped for an heir that is still behind its gate."""
        return self._giving_way is not None

    @property
    def is_clear(self) -> bool:
        """Whether no engine is left beside the one that schedules."""
        return self.heir is None and not self._leaving

    @property
    def runs(self) -> tuple[EngineRun, ...]:
        """Every engine beside the one that schedules."""
        return (*self._leaving, *((self.heir,) if self.heir is not None else ()))

    def begin(self, target: Generation, running: Generation, now: float) -> None:
        """Start an heir for *target* beside the engine of *running*.

        Raises the errors of ``Starter.start_beside``.
        """
        self.heir = self._starter.start_beside(target, running, now)
        log.info("swap_begun", generation=target.number, beside=running.number)

    def step(self, now: float) -> EngineRun | None:
        """Advance all of them. Return an heir that ended without a request, once.

        ``is_handing_over`` stays true until ``drop``, because the old engine is being stopped.
        """
        for run in self._leaving:
            run.step(now)
        self._leaving = [run for run in self._leaving if run.phase is not EnginePhase.ENDED]
        heir = self.heir
        if heir is None:
            return None
        heir.step(now)
        if heir.phase is not EnginePhase.ENDED:
            return None
        self.heir = None
        return heir

    def may_supersede(self) -> bool:
        """Return whether a newer plan may replace the heir that loads.

        This is allowed once in a row: if plans change faster than engines load, no heir would ever
        reach its gate.
        """
        if self.heir is None or self.heir.phase is not EnginePhase.LOADING or self._was_superseded:
            return False
        self._was_superseded = True
        return True

    def give_way(self, running: EngineRun, now: float) -> None:
        """Stop *running* in favour of the heir that waits at its gate."""
        self._giving_way = running
        self._was_superseded = False
        running.stop(now)

    def hand_over(self, now: float) -> EngineRun | None:
        """Let the heir attach once the kernel is free. Return it when its gate was opened.

        Drops the heir if the kernel does not become free, and if it ejected the old engine. If the
        hints cannot be set, drops the heir and raises SuccessionError.
        """
        old, heir = self._giving_way, self.heir
        if old is None or heir is None or heir.phase is not EnginePhase.WAITING:
            return None
        if old.diagnosis is not None:
            self.drop("the engine before it was ejected", now)
            return None
        is_free = self._kernel.read().is_free
        if old.has_let_go and is_free:
            self._make_hints_ready(heir, now)
            heir.open_gate(now, old)
            self.heir = self._giving_way = None
            self.dismiss(old)
            return heir
        ended_at = old.released_at if old.phase is EnginePhase.ENDED else None
        if old.is_stuck or (ended_at is not None and now - ended_at > RELEASE_S):
            self.drop("the kernel does not become free", now)
        return None

    def _make_hints_ready(self, heir: EngineRun, now: float) -> None:
        try:
            self._starter.make_hints_ready(heir.generation.plan)
        except EngineError as error:
            self.drop(str(error), now)
            raise SuccessionError(heir.generation, str(error)) from error

    def drop(self, why: str, now: float) -> None:
        """End the heir, if any. It has attached nothing."""
        heir, self.heir, self._giving_way = self.heir, None, None
        if heir is not None:
            log.warning("successor_dropped", generation=heir.generation.number, why=why)
            heir.stop(now)
            self.dismiss(heir)

    def dismiss(self, run: EngineRun) -> None:
        """Keep stepping *run*, which was stopped, until it has ended."""
        if run.phase is not EnginePhase.ENDED:
            self._leaving.append(run)
