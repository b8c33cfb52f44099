"""Adds the state of the agent itself to a snapshot of the node."""

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from temper_core.agent.parts import Parts
from temper_core.records.profiles import ProfileFailure
from temper_core.records.snapshots import EngineEnd, Snapshot

MOST_FAILURES = 20
"""Profiles in the defects that could not be loaded. The log and the metrics have all of them."""


def with_agent_state(snapshot: Snapshot, parts: Parts, failures: Mapping[str, str]) -> Snapshot:
    """Return *snapshot* with the state of *parts*. *failures* are errors of the loop, by step."""
    return evolve(
        snapshot,
        overhead=evolve(snapshot.overhead, instruments=parts.instruments.costs()),
        defects=(*snapshot.defects, *_defects(parts, failures)),
        steering=parts.steering.state,
        last_end=_last_end(parts),
        trials=parts.trials.states(),
    )


def _defects(parts: Parts, failures: Mapping[str, str]) -> tuple[str, ...]:
    defects = (
        parts.pods.defect,
        parts.scheduler.refusal,
        parts.events.defect if parts.events is not None else "",
        parts.requests.defect,
        parts.server.defect,
        *(f"{step} failed: {error}" for step, error in failures.items()),
        *_profile_defects(parts.profiles.catalogue.failures),
        *parts.instruments.defects,
        *parts.published.undeclared,
    )
    return tuple(filter(None, defects))


def _profile_defects(failures: Sequence[ProfileFailure]) -> Iterator[str]:
    for failure in failures[:MOST_FAILURES]:
        yield f"profiles: {failure.source}: {failure.reason}"
    if (left := len(failures) - MOST_FAILURES) > 0:
        yield f"profiles: {left} more could not be loaded"


def _last_end(parts: Parts) -> EngineEnd | None:
    diagnosis = parts.scheduler.diagnosis
    if diagnosis is None:
        return None
    return EngineEnd(diagnosis.kind.value, diagnosis.summary, diagnosis.remedy)
