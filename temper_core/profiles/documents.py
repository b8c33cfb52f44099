"""Read workload profiles strictly, with the checks that need more than one value.

All problems are reported at once: the problem of one key does not hide those of others.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from attrs import fields_dict

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.patterns import NO_ENGINE
from temper_core.profiles.document_bounds import excess, items_of
from temper_core.profiles.match_reach import hidden, impossibilities
from temper_core.profiles.tables import (
    GroupTable,
    ProfileTable,
    Table,
    completed_table,
)
from temper_core.records.profiles import Bounds, DerivedProfile, Fingerprint, WorkloadProfile
from temper_core.records.thread_groups import (
    Behaviour,
    ThreadGroup,
    ThreadMatch,
    doubled_name_problem,
    early_rest_problem,
    empty_match_problem,
    match_problem,
)

Model = TypeVar("Model")
COUNTED = ("cores", "threads_per_core", "sockets", "numa_nodes", "llcs")
UNNAMED = "unnamed"


def parse_profile(text: str, source: str) -> WorkloadProfile:
    """Read the TOML *text* of a profile. Raise DocumentError with every misfit, naming *source*.

    A profile that ``extends`` another is returned as a DerivedProfile. The node completes it,
    because only the node has all profiles.
    """
    return profile_of(documents.parse_toml(text, source=source), source)


def complete(child: DerivedProfile, parent: WorkloadProfile, source: str) -> WorkloadProfile:
    """Return *child* completed from *parent*. Raise DocumentError if they clash."""
    table, problems = completed_table(child, parent)
    judged = table
    if not problems:
        judged, faults = _judged(table)
        problems = [_by_name(fault, table) for fault in faults]
    if problems:
        raise DocumentError(source, [f"extends {child.extends!r}: {fault}" for fault in problems])
    return documents.fit(judged, WorkloadProfile, source=source)


def profile_of(table: Table, source: str) -> WorkloadProfile:
    """Read the parsed *table* of a profile, as ``parse_profile`` does."""
    judged, problems = _judged(table)
    if problems:
        raise DocumentError(source, problems)
    if "extends" not in table:
        return documents.fit(judged, WorkloadProfile, source=source)
    written = documents.fit(judged, ProfileTable, source=source)
    return DerivedProfile(
        id=written.id,
        description=written.description or "",
        fingerprint=written.fingerprint,
        machine_shape=written.machine_shape,
        traits=written.traits,
        evidence=written.evidence,
        enabled=written.enabled,
        extends=str(written.extends),
        given=table,
    )


def _judged(table: Table) -> tuple[Table, list[str]]:
    """Return *table* with its sound matches as records, and all its problems, by path.

    The first bound on a number that it exceeds hides all others.
    """
    if problem := excess(table):
        return table, [problem]
    judged = _with_records(table)
    return judged, _problems(judged)


def _with_records(table: Table) -> Table:
    """Return *table* with a record for each sound match, because each is fitted several times."""
    groups = table.get("thread_groups")
    if not isinstance(groups, list | tuple):
        return table
    return {**table, "thread_groups": [_with_matches(group) for group in groups]}


def _with_matches(group: object) -> object:
    if not isinstance(group, Mapping) or not _matches(group):
        return group
    made = [_piece(match, ThreadMatch) if match else None for match in _matches(group)]
    return {**group, "match": [new or old for new, old in zip(made, group["match"], strict=True)]}


def _problems(table: Table) -> list[str]:
    problems: list[str] = []
    try:
        documents.fit(table, ProfileTable, source="")
    except DocumentError as error:
        problems += error.problems
    problems = _by_item(problems, list(_item_misfits(table.get("fingerprint"))))
    problems += _shape_misfits(table.get("machine_shape"))
    groups = table.get("thread_groups", [])
    if isinstance(groups, list | tuple):
        problems += _group_misfits(groups, is_derived="extends" in table)
    return _one_for_the_engine(sorted(dict.fromkeys(problems)))


def _one_for_the_engine(problems: list[str]) -> list[str]:
    """Return *problems* with one for all patterns that are refused because RE2 is missing."""
    patterns = [problem for problem in problems if problem.endswith(NO_ENGINE)]
    return [problem for problem in problems if problem not in patterns[1:]]


def _by_item(problems: list[str], items: list[tuple[str, int, str]]) -> list[str]:
    """Return *problems* with the problem of each item, because the model reports only the first."""
    paths = {path for path, _, _ in items}
    rest = [problem for problem in problems if problem.partition(": ")[0] not in paths]
    return rest + [f"{path}[{number}]: {why}" for path, number, why in items]


def _item_misfits(fingerprint: object) -> Iterator[tuple[str, int, str]]:
    if not isinstance(fingerprint, Mapping):
        return
    for key in ("annotations", "versions"):
        for number, item in enumerate(items_of(fingerprint.get(key))):
            try:
                documents.fit({key: [item]}, Fingerprint, source="")
            except DocumentError as error:
                why = error.problems[0].partition(": ")[2]
                yield f"fingerprint.{key}", number, why


def _group_misfits(groups: "list[Any] | tuple[Any, ...]", *, is_derived: bool) -> Iterator[str]:
    tables = {number: group for number, group in enumerate(groups) if isinstance(group, Mapping)}
    for number, table in tables.items():
        path = f"thread_groups[{number}]"
        for place, match in enumerate(_matches(table)):
            yield from (f"{path}.match[{place}]{key}: {why}" for key, why in _match_misfits(match))
        if {} in _matches(table):
            yield f"{path}: {empty_match_problem(str(table.get('name', UNNAMED)))}"
        if not is_derived:
            yield from _whole_group_misfits(path, table)
    if is_derived:
        yield from _doubled(tables)
        return
    if not groups:
        yield "thread_groups: must have at least one group"
    yield from _misfits_between(tables, len(groups))


def _whole_group_misfits(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    if "override" in table:
        yield f"{path}.override: is for profiles that extend another"
    sound = _sound(table, GroupTable, {"name": UNNAMED})
    if "treatment" in table and "treatment" not in sound:
        sound.pop("cpu_fraction", None)  # an unknown treatment does not show if it may have one
    sound.pop("override", None)
    sound["match"] = [match for match in sound.get("match", []) if match]  # reported above
    try:
        documents.fit(sound, ThreadGroup, source=path)
    except DocumentError as error:
        yield from (f"{path}: {problem.removeprefix('document: ')}" for problem in error.problems)


def _misfits_between(tables: Mapping[int, Mapping[str, Any]], count: int) -> Iterator[str]:
    """Yield problems between groups. An unreadable group hides no other, and takes no rest."""
    by_number = {number: _group_for_order(table) for number, table in tables.items()}
    readable = {number: group for number, group in by_number.items() if group is not None}
    numbers = list(readable)
    groups = list(readable.values())
    yield from _doubled(tables)
    if problem := match_problem(groups):
        yield f"thread_groups: {problem}"
        return
    for number, group in readable.items():
        if not group.match and number < count - 1:
            yield f"thread_groups[{number}]: {early_rest_problem(group.name)}"
    for place, takers in hidden(groups):
        path = f"thread_groups[{numbers[place]}]"
        yield f"{path}: is hidden: every thread that it matches is taken by {takers} before it"


def _doubled(tables: Mapping[int, Mapping[str, Any]]) -> Iterator[str]:
    names: set[str] = set()
    for number, table in tables.items():
        name = table.get("name")
        if isinstance(name, str) and name in names:
            yield f"thread_groups[{number}].name: {doubled_name_problem(name)}"
        elif isinstance(name, str):
            names.add(name)


def _group_for_order(table: Mapping[str, Any]) -> ThreadGroup | None:
    """Return a group with its name and matches. None if they could not be read."""
    keys = {key: table[key] for key in ("name", "match") if key in table}
    group = _piece(keys, ThreadGroup)
    is_readable = group is not None and isinstance(keys.get("match", []), list | tuple)
    return group if is_readable else None


def _matches(table: Mapping[str, Any]) -> list[Any]:
    return items_of(table.get("match"))


def _match_misfits(raw: object) -> Iterator[tuple[str, str]]:
    if isinstance(raw, ThreadMatch):
        yield from impossibilities(raw)
        yield from _behaviour_misfits(raw.behaviour)
    if not isinstance(raw, Mapping):
        return
    match = _piece(_sound(raw, ThreadMatch), ThreadMatch) or ThreadMatch()
    yield from impossibilities(match)
    behaviour = raw.get("behaviour")
    if isinstance(behaviour, Mapping):
        yield from _behaviour_misfits(_piece(_sound(behaviour, Behaviour), Behaviour))


def _behaviour_misfits(behaviour: Behaviour | None) -> Iterator[tuple[str, str]]:
    for name in ("cpu_share", "run_us", "wakeups_per_s"):
        bounds = getattr(behaviour, name, None)
        if bounds is not None and not 0 <= bounds[0] <= bounds[1]:
            yield f".behaviour.{name}", _misordered(bounds)


def _shape_misfits(shape: object) -> Iterator[str]:
    if not isinstance(shape, Mapping):
        return
    for name in COUNTED:
        bounds: Any = _piece(shape.get(name), Bounds)
        low, high = bounds if isinstance(bounds, tuple) else (bounds, bounds)
        if bounds is not None and not 1 <= low <= high:
            yield f"machine_shape.{name}: {_misordered(bounds, least=1)}"


def _misordered(bounds: object, least: int = 0) -> str:
    return f"must be [min, max] with {least} <= min <= max, not {bounds!r}"


def _sound(table: Mapping[str, Any], model: type[Any], needed: Table | None = None) -> Table:
    """Return the keys of *table* that are valid alone. The others are reported elsewhere."""
    needed = needed or {}
    present = {key: table[key] for key in fields_dict(model) if key in table}
    fitting = {
        key: value
        for key, value in present.items()
        if _piece({**needed, key: value}, model) is not None
    }
    return {**needed, **fitting}


def _piece(value: object, model: Any) -> Any:  # noqa: ANN401 - a union is no class
    """Return *value* as a *model*. None if it does not fit."""
    try:
        return documents.fit(value, model, source="")
    except DocumentError:
        return None


def _by_name(problem: str, table: Table) -> str:
    """Replace the numbers of groups by their names: numbers of merged groups are in no document."""
    renamed = problem
    for number, group in enumerate(table["thread_groups"]):
        renamed = renamed.replace(f"thread_groups[{number}]", f"thread group {group['name']!r}")
    return renamed
