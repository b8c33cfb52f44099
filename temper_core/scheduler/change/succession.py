"""The warm swap: the next engine loads beside the one that schedules, and takes its place.

    begin ─▶ the heir loads ─▶ it waits at its gate ─▶ give_way: the old engine is stopped
          ─▶ the kernel is free: hints are made right, the gate opens, the heir is the engine

Up to ``give_way`` nothing of this touches the engine that schedules: an heir that does not load or
is not verified simply ends. An heir is no reserve, though. Where the old engine was thrown out or
fails by itself, the heir is dropped too: what made the kernel throw one engine out (a stalled
thread, SysRq-S, a CPU that went) may well be there still, and an engine that attaches itself again
within milliseconds would undo both the back-off and an operator's SysRq.
"""

import structlog

from temper_core.errors import EngineError
from temper_core.records.plans import Generation
from temper_core.scheduler.change.starter import Starter
from temper_core.scheduler.engine.engine_run import EnginePhase, EngineRun
from temper_core.scheduler.host.kernel import SchedExt

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


RELEASE_S = 1.0
"""How long the kernel may take to be free once the old engine has ended."""


class SuccessionError(EngineError):
    """The old engine has gone and the heir may not attach. ``generation`` was the heir's."""

    def __init__(self, generation: Generation, why: str) -> None:
        self.generation = generation
        super().__init__(why)


class Succession:
    """The heir, the engine that gives way to it, and those that still have to end."""

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
        """Whether there is no engine but the one that schedules, if that."""
        return self.heir is None and not self._leaving

    @property
    def runs(self) -> tuple[EngineRun, ...]:
        """Every engine that is here beside the one that schedules."""
        return (*self._leaving, *((self.heir,) if self.heir is not None else ()))

    def begin(self, target: Generation, running: Generation, now: float) -> None:
        """Start an heir for *target* beside the engine of *running*. Raises as the starter does."""
        self.heir = self._starter.start_beside(target, running, now)
        log.info("swap_begun", generation=target.number, beside=running.number)

    def step(self, now: float) -> EngineRun | None:
        """Move all of them on. Return an heir that ended unasked, once.

        If it was to be handed over, that stands until ``drop``: the old engine is being stopped.
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
        """Say whether a newer plan may replace the heir that loads.

        Only one time in a row: where plans change faster than engines load, none would ever arrive.
        """
        if self.heir is None or self.heir.phase is not EnginePhase.LOADING or self._was_superseded:
            return False
        self._was_superseded = True
        return True

    def give_way(self, running: EngineRun, now: float) -> None:
        """Stop *running* for the heir that waits at its gate."""
        self._giving_way = running
        self._was_superseded = False
        running.stop(now)

    def hand_over(self, now: float) -> EngineRun | None:
        """Let the heir attach once the kernel is free. Return it when that was done.

        Drops the heir where the kernel does not become free, and where the hints cannot be made
        right: the latter raises SuccessionError.
        """
        old, heir = self._giving_way, self.heir
        if old is None or heir is None or heir.phase is not EnginePhase.WAITING:
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
        """End the heir, if there is one. It has attached nothing."""
        heir, self.heir, self._giving_way = self.heir, None, None
        if heir is not None:
            log.warning("successor_dropped", generation=heir.generation.number, why=why)
            heir.stop(now)
            self.dismiss(heir)

    def dismiss(self, run: EngineRun) -> None:
        """See *run*, which was stopped, to its end."""
        if run.phase is not EnginePhase.ENDED:
            self._leaving.append(run)
