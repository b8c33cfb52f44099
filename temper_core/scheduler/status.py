"""The node's status: mode, reason and detail, from the state of every part."""

from attrs import frozen

from temper_core.records.snapshots import Mode, SafeModeReason
from temper_core.scheduler.engine_process.engine_run import EnginePhase, EngineRun
from temper_core.scheduler.preflight.preflight import Hold


@frozen
class StatusReason:
    """The text of a status. ``reason`` is a SafeModeReason, or why the agent only observes."""

    mode: Mode
    reason: str = ""
    detail: str = ""


@frozen
class StatusDetails:
    """The facts beside the engine run.

    ``later`` is why another plan is not in force yet, ``cold`` why the change is a cold restart.
    """

    hold: Hold | None = None
    heir: EngineRun | None = None
    is_handing_over: bool = False
    later: str = ""
    cold: str = ""


def tell(run: EngineRun | None, facts: StatusDetails) -> StatusReason:
    """Return the status of *run*, the engine that is or will be attached."""
    hold = facts.hold
    if hold is not None:
        still = f" ({run.problem or 'the engine is still stopping'})" if run is not None else ""
        return StatusReason(hold.mode, str(hold.reason), hold.detail + still)
    cold = f" (cold: {facts.cold})" if facts.cold else ""
    if run is None:
        return StatusReason(Mode.RELOADING, detail=f"between two engines{cold}")
    if run.diagnosis is not None:
        return StatusReason(Mode.SAFE_MODE, str(SafeModeReason.EJECTED), run.diagnosis.summary)
    if run.phase is EnginePhase.ATTACHED:
        parts = (facts.later, _beside(facts.heir))
        return StatusReason(Mode.ENFORCING, detail="; ".join(part for part in parts if part))
    return StatusReason(Mode.RELOADING, detail=_changing(run, facts, cold))


def _beside(heir: EngineRun | None) -> str:
    if heir is None:
        return ""
    return f"generation {heir.generation.number} loads beside it ({heir.deadline}): {heir.missing}"


def _changing(run: EngineRun, facts: StatusDetails, cold: str) -> str:
    number = run.generation.number
    if run.phase is EnginePhase.LOADING:
        return f"loading generation {number}{cold} ({run.deadline}): {run.missing}"
    if run.phase is EnginePhase.ATTACHING:
        return f"attaching generation {number}: {run.missing}"
    after = ""
    if facts.is_handing_over and facts.heir is not None:
        after = f", generation {facts.heir.generation.number} waits for the kernel"
    problem = f": {run.problem}" if run.problem else ""
    return f"stopping generation {number}{after}{cold}{problem}"
