"""Reads a recording into records, look by look. The input is untrusted and checked strictly."""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
from attrs import field, frozen
from attrs.validators import in_, max_len

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, LayerPlan, Note, ProfileCode
from temper_core.records.pods import Pod
from temper_core.records.profiles import LoadedProfile, ProfileFailure
from temper_core.records.snapshots import Snapshot, ThreadSample
from temper_core.records.steering import SteeredPlace
from temper_core.records.tiers import Tier
from temper_core.rehearsal.earlier_versions import look_of_today, settings_of_today
from temper_core.rehearsal.recorded_patterns import refuse_repeats
from temper_core.rehearsal.recording_format import (
    MOST_CPUS,
    MOST_PODS,
    SCHEMA_VERSION,
    TOLD_ELSEWHERE,
)
from temper_core.rehearsal.recording_lines import Line, misfit, read_lines
from temper_core.settings.models import Settings

LATEST_S = 253_402_300_799.0
"""The last second that Python can convert to a date."""
LONGEST_WINDOW_S = 1e7

Model = TypeVar("Model")


@frozen
class RecordedPlugin:
    """A plugin that was active on the recorded node."""

    name: str
    version: str = ""


@frozen
class RecordingHeader:
    """The values for the whole recording. ``source`` is ``agent`` or ``observer``."""

    schema_version: int = field(validator=in_([SCHEMA_VERSION]))
    settings: Settings
    machine: MachineShape
    node: str = ""
    temper: str = ""
    source: str = field(default="agent", validator=in_(["agent", "observer"]))
    plugins: tuple[RecordedPlugin, ...] = ()
    left_out: tuple[str, ...] = ()


@frozen
class RecordedMoment:
    """One look with the profiles of its time. Its snapshot has the plan of its time."""

    snapshot: Snapshot
    catalogue: ProfileCatalogue


class Recording:
    """A recording that is being read. The head is read at once, the looks on demand.

    Every method raises DocumentError for a misfit, naming file, line and key.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = read_lines(path)
        first = next(self._lines, None)
        if first is None or first.kind != "recording":
            raise misfit(f"{path}:1", "is no recording of a node: there is no line 'recording'")
        settings_of_today(first.values.get("settings"))
        self.head = _fit(first, first.values, RecordingHeader)
        _refuse_odd_machine(first, self.head.machine)

    def moments(self) -> Iterator[RecordedMoment]:
        """Yield every look in order. May be called once."""
        catalogue, plan, last_s, looks = ProfileCatalogue(), None, -math.inf, 0
        for line in self._lines:
            match line.kind:
                case "profiles":
                    catalogue = _fit(line, _only(line, "profiles"), _Profiles, "profiles").catalogue
                case "plan":
                    plan = _plan_in(line, self.head.machine)
                case "look":
                    snapshot = self._snapshot(line, plan)
                    if snapshot.monotonic_s < last_s:
                        raise line.misfit("look.monotonic_s: is before that of the last look")
                    last_s, looks = snapshot.monotonic_s, looks + 1
                    yield RecordedMoment(snapshot, catalogue)
                case "end":
                    self._end(line, looks)
                    return
                case other:
                    raise line.misfit(f"kind: is {other!r}, which no recording has here")
        raise misfit(str(self._path), f"is cut: after {looks} looks there is no line 'end'")

    def _end(self, line: Line, looks: int) -> None:
        if line.values.get("looks") != looks:
            raise line.misfit(f"looks: must be {looks}, as many as there are")
        if next(self._lines, None) is not None:
            raise line.misfit("is the end, but another line follows")

    def _snapshot(self, line: Line, plan: LayerPlan | None) -> Snapshot:
        look = _only(line, "look")
        if not isinstance(look, dict):
            raise line.misfit("look: must be a table")
        look = look_of_today(look)
        for name in TOLD_ELSEWHERE & look.keys():
            raise line.misfit(f"look: unknown key {name!r}")
        context = {"node": self.head.node, "machine": self.head.machine, "plan": plan}
        threads = look.get("threads", [])
        if isinstance(threads, list):
            context["threads"] = tuple(map(_thread, threads))
        snapshot = _fit(line, {**look, **context}, Snapshot, "look")
        limits = (("at", LATEST_S), ("monotonic_s", LATEST_S), ("window_s", LONGEST_WINDOW_S))
        for name, most in limits:
            if not 0 <= getattr(snapshot, name) <= most:
                raise line.misfit(f"look.{name}: must be from 0 to {most:g}")
        return snapshot


@frozen
class _Profiles:
    profiles: tuple[LoadedProfile, ...] = ()
    failures: tuple[ProfileFailure, ...] = ()

    @property
    def catalogue(self) -> ProfileCatalogue:
        return ProfileCatalogue(self.profiles, self.failures)


@frozen
class _Assigned:
    """An assignment whose profile is an index into the plan's list of profiles."""

    tier: Tier
    reason: str
    profile: int | None = None
    profile_reason: str = ""
    is_system: bool = False
    profile_code: ProfileCode | None = None


@frozen
class _Plan:
    layers: tuple[Layer, ...]
    pods: tuple[Pod, ...] = field(default=(), validator=max_len(MOST_PODS))
    profiles: tuple[LoadedProfile, ...] = ()
    assignments: tuple[_Assigned, ...] = ()
    notes: tuple[Note, ...] = ()
    hints: Mapping[str, int] = field(factory=dict)
    steering: tuple[SteeredPlace, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not self.layers:
            raise ValueError("must have at least one layer")
        if len(self.assignments) != len(self.pods):
            raise ValueError("must have one assignment for each pod")
        numbers = (
            assignment.profile or 0
            for assignment in self.assignments
            if assignment.profile is not None
        )
        if any(not 0 <= number < len(self.profiles) for number in numbers):
            raise ValueError("an assignment has a profile that is not among the profiles")


def _plan_in(line: Line, machine: MachineShape) -> LayerPlan | None:
    values = _only(line, "plan")
    if values is None:
        return None
    plan = _fit(line, values, _Plan, "plan")
    for layer in plan.layers:
        for matcher in (matcher for block in layer.matches for matcher in block):
            if matcher.kind == "CgroupRegex":
                refuse_repeats(line, layer.name, str(matcher.value))
    assignments = tuple(
        Assignment(
            pod,
            assigned.tier,
            assigned.reason,
            None if assigned.profile is None else plan.profiles[assigned.profile],
            assigned.profile_reason,
            assigned.is_system,
            assigned.profile_code,
        )
        for pod, assigned in zip(plan.pods, plan.assignments, strict=True)
    )
    return LayerPlan(machine, plan.layers, assignments, plan.notes, plan.hints, plan.steering)


def _only(line: Line, key: str) -> Any:  # noqa: ANN401 - JSON
    if line.values.keys() != {key}:
        raise line.misfit(f"a line {line.kind!r} has the key {key!r}, and no other")
    return line.values[key]


def _fit(line: Line, values: object, model: type[Model], path: str = "") -> Model:
    try:
        return documents.fit(values, model, source=line.source)
    except DocumentError as error:
        raise line.misfit(*(_below(path, problem) for problem in error.problems)) from error


def _below(path: str, problem: str) -> str:
    """Prefix *problem* with *path*. A problem of the whole document has no key of its own."""
    if not path:
        return problem
    about_all = problem.removeprefix("document: ")
    return f"{path}.{problem}" if about_all == problem else f"{path}: {about_all}"


def _refuse_odd_machine(line: Line, machine: MachineShape) -> None:
    ids = {cpu.id for cpu in machine.cpus}
    highest = 2 * MOST_CPUS
    if len(machine.cpus) > MOST_CPUS or max(ids) >= highest:
        raise line.misfit(f"machine.cpus: must be at most {MOST_CPUS}, of ids below {highest}")
    if len(ids) != len(machine.cpus):
        raise line.misfit("machine.cpus: an id is given twice")


def _thread(row: object) -> object:
    """Convert the thread of a look. The strict reader reports a misfit, which stays unchanged.

    A recording has many thousands of threads, and the strict reader takes ten times as long.
    """
    if type(row) is not dict:
        return row
    values = dict(row)
    for name, value in row.items():
        read = _READERS.get(name)
        made = None if read is None else read(value)
        if made is None:
            return row
        values[name] = made
    return ThreadSample(**values) if values.keys() >= _REQUIRED else row


def _exactly(kind: type[Any]) -> Callable[[Any], Any]:
    return lambda value: value if type(value) is kind else None


def _whole(value: Any) -> int | None:  # noqa: ANN401 - JSON
    is_whole = type(value) is int and value.bit_length() <= documents.INTEGER_BITS
    return value if is_whole else None


def _number(value: Any) -> float | None:  # noqa: ANN401 - JSON
    return value if type(value) is float and math.isfinite(value) else None


def _wholes(values: list[Any]) -> tuple[int, ...] | None:
    return tuple(values) if all(_whole(value) is not None for value in values) else None


_TIERS = {tier.value: tier for tier in Tier}
_BY_KIND: Mapping[object, Callable[[Any], Any]] = {
    str: _exactly(str),
    bool: _exactly(bool),
    int: _whole,
    float: _number,
    Tier | None: lambda value: _TIERS.get(value) if type(value) is str else None,
    tuple[int, ...]: lambda value: _wholes(value) if type(value) is list else None,
}
_FIELDS = attrs.fields(attrs.resolve_types(ThreadSample))
_READERS = {field.name: _BY_KIND[field.type] for field in _FIELDS if field.type in _BY_KIND}
_REQUIRED = {field.name for field in _FIELDS if field.default is attrs.NOTHING}
