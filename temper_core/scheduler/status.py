"""The node's state in words: mode, reason and detail, from what every part knows."""

from attrs import frozen

from temper_core.records.snapshots import Mode, SafeModeReason
from temper_core.scheduler.engine.engine_run import EnginePhase, EngineRun
from temper_core.scheduler.preflight.preflight import Hold


@frozen
class StatusReason:
    """What the status says: ``reason`` is a SafeModeReason or why it only observes."""

    mode: Mode
    reason: str = ""
    detail: str = ""


@frozen
class StatusDetails:
    """What there is to tell beside the engine: why another plan is not in force, and why cold."""

    hold: Hold | None = None
    heir: EngineRun | None = None
    is_handing_over: bool = False
    later: str = ""
    cold: str = ""


def tell(run: EngineRun | None, facts: StatusDetails) -> StatusReason:
    """Say how things stand with *run*, the engine that has or will have the kernel."""
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
