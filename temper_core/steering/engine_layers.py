"""The attached engine as steering needs it: its layers, and its record of each thread's."""

import structlog
from attrs import frozen

from temper_core.errors import BpfError
from temper_core.steering.engine_record import find_engine_record
from temper_core.steering.kernel import EngineRecord

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

AGAIN_S = 5.0


@frozen
class RunningEngine:
    """An attached engine: its process, its layers in its own order, and all engines' processes."""

    pid: int = 0
    layers: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()


NO_ENGINE = RunningEngine()


class EngineLayers:
    """Finds the record of the current engine. ``problem`` is why it was not found, else empty."""

    def __init__(self) -> None:
        self.engine = NO_ENGINE
        self.record: EngineRecord | None = None
        self.problem = ""
        self._again_at = 0.0

    def follow(self, engine: RunningEngine, now: float) -> None:
        """Look for the record of *engine* once it runs, and retry every ``AGAIN_S`` seconds."""
        is_another = (engine.pid, engine.layers) != (self.engine.pid, self.engine.layers)
        self.engine = engine
        if is_another:
            self.record, self.problem, self._again_at = None, "", now
        if self.record is not None or not engine.pid or now < self._again_at:
            return
        self._again_at = now + AGAIN_S
        before = self.problem
        try:
            self.record = find_engine_record(engine.pid)
            self.problem = "" if self.record else "the engine's record of layers was not found"
        except BpfError as error:
            self.problem = f"the engine's record of layers cannot be read: {error}"
        if self.problem and self.problem != before:
            log.warning("engine_record_not_found", pid=engine.pid, reason=self.problem)
