"""Reading a workload profile: the strict reader, and what a single value cannot tell."""

from collections.abc import Iterator

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.records.profiles import (
    LONGEST_COMM,
    Behaviour,
    ShapeRange,
    ThreadMatch,
    WorkloadProfile,
)


def parse_profile(text: str, source: str) -> WorkloadProfile:
    """Read the TOML *text* of a profile; raise DocumentError with every misfit, naming *source*."""
    profile = documents.fit(
        documents.parse_toml(text, source=source), WorkloadProfile, source=source
    )
    problems = sorted(_misfits(profile))
    if problems:
        raise DocumentError(source, problems)
    return profile


def _misfits(profile: WorkloadProfile) -> Iterator[str]:
    yield from _shape_misfits(profile.machine_shape)
    for number, group in enumerate(profile.thread_groups):
        for place, match in enumerate(group.match):
            for path, problem in _match_misfits(match):
                yield f"thread_groups[{number}].match[{place}]{path}: {problem}"


def _match_misfits(match: ThreadMatch) -> Iterator[tuple[str, str]]:
    for name in ("comm_prefix", "process"):
        value = getattr(match, name)
        # The kernel keeps 15 bytes of a name; the model counts characters.
        if value is not None and len(value.encode()) > LONGEST_COMM:
            yield f".{name}", f"must be at most {LONGEST_COMM} bytes of UTF-8"
    if match.behaviour is not None:
        yield from _behaviour_misfits(match.behaviour)


def _behaviour_misfits(behaviour: Behaviour) -> Iterator[tuple[str, str]]:
    for name in ("cpu_share", "run_us", "wakeups_per_s"):
        bounds = getattr(behaviour, name)
        if bounds is not None and not 0 <= bounds[0] <= bounds[1]:
            yield f".behaviour.{name}", _misordered(bounds)


def _shape_misfits(shape: ShapeRange) -> Iterator[str]:
    for name in ("cores", "threads_per_core", "sockets", "numa_nodes"):
        bounds = getattr(shape, name)
        low, high = bounds if isinstance(bounds, tuple) else (bounds, bounds)
        if bounds is not None and not 1 <= low <= high:
            yield f"machine_shape.{name}: {_misordered(bounds, least=1)}"


def _misordered(bounds: object, least: int = 0) -> str:
    return f"must be [min, max] with {least} <= min <= max, not {bounds!r}"
