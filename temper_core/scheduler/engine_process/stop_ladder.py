"""The stop ladder: SIGTERM, SIGKILL, and SysRq-S if the settings allow it."""

from enum import StrEnum

import structlog

from temper_core.scheduler.engine_process.environment import EngineEnvironment
from temper_core.scheduler.engine_process.process import EngineProcess

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

KILL_S = 5.0


class Rung(StrEnum):
    """The rungs of the ladder, in their order."""

    TERMINATE = "terminate"
    KILL = "kill"
    SYSRQ = "sysrq"
    NONE_LEFT = "none_left"


class StopLadder:
    """Ends one engine. It goes to the next rung when the time of the last one is over.

    ``problem`` describes the fault once no rung is left. *allows_sysrq* permits SysRq-S, by which
    the kernel ejects any attached scheduler.
    """

    def __init__(
        self,
        process: EngineProcess,
        surroundings: EngineEnvironment,
        *,
        terminate_s: float,
        allows_sysrq: bool,
    ) -> None:
        self.rung: Rung | None = None
        self.problem = ""
        self.allows_sysrq = allows_sysrq
        self._process = process
        self._surroundings = surroundings
        self._terminate_s = terminate_s
        self._until = 0.0

    @property
    def is_exhausted(self) -> bool:
        """Whether no rung is left."""
        return self.rung is Rung.NONE_LEFT

    def climb(self, now: float, *, is_out: bool) -> bool:
        """Go one rung up if the time of the last one is over. Return whether the ladder is done.

        *is_out* means that the kernel runs nothing of this engine. Then a process that does not
        end after SIGKILL schedules nothing and runs no more code.
        """
        if now < self._until:
            return False
        if self.rung is Rung.TERMINATE:
            self.enter(Rung.KILL, now)
        elif self.rung is Rung.KILL and self.allows_sysrq and not is_out:
            self.enter(Rung.SYSRQ, now)
        elif is_out and self.rung is not Rung.KILL:
            log.error("engine_process_left_behind", pid=self._process.pid)
            return True
        else:
            self.enter(Rung.NONE_LEFT, now)
        return False

    def enter(self, rung: Rung, now: float) -> None:
        """Take the action of *rung* and start its time."""
        self.rung = rung
        log.info("engine_stop_asked", rung=rung.value, pid=self._process.pid)
        if rung is Rung.TERMINATE:
            self._until = now + self._terminate_s
            self._process.terminate()
            return
        self._until = now + KILL_S
        if rung is Rung.SYSRQ:
            self._surroundings.eject()
            return
        if rung is Rung.NONE_LEFT:
            self.problem = (
                f"the engine (process {self._process.pid}) does not die by SIGKILL; "
                "`echo S > /proc/sysrq-trigger` ejects it ([scheduler] sysrq allows Temper to)"
            )
            log.error("engine_does_not_end", pid=self._process.pid)
        self._process.kill()
