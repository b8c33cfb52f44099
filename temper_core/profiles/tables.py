"""A profile as written in its document, before it is completed.

Profiles that extend another give only a part, so only names are required here.
``profiles.documents`` checks the relations between keys.
"""

from enum import StrEnum
from typing import Any

from attrs import asdict, field, fields, frozen
from attrs.validators import optional

from temper_core.records.key_metadata import key_help
from temper_core.records.profile_evidence import Evidence
from temper_core.records.profiles import DerivedProfile, Fingerprint, ShapeRange, WorkloadProfile
from temper_core.records.thread_groups import (
    ID_PATTERN,
    IDENTIFIER,
    ThreadGroup,
    ThreadMatch,
    Treatment,
)
from temper_core.records.traits import Traits

Table = dict[str, Any]

_GROUP: Any = fields(ThreadGroup)
_PROFILE: Any = fields(WorkloadProfile)


class Override(StrEnum):
    """The effect of a group on the parent's group of the same name."""

    MERGE = "merge"
    REPLACE = "replace"
    REMOVE = "remove"


@frozen
class GroupTable:
    """One ``[[thread_groups]]`` as written."""

    name: str = field(validator=_GROUP.name.validator, metadata=_GROUP.name.metadata)
    match: tuple[ThreadMatch, ...] | None = field(default=None, metadata=_GROUP.match.metadata)
    treatment: Treatment | None = field(default=None, metadata=_GROUP.treatment.metadata)
    cpu_fraction: float | None = field(
        default=None,
        validator=_GROUP.cpu_fraction.validator,
        metadata=_GROUP.cpu_fraction.metadata,
    )
    slice_us: int | None = field(
        default=None, validator=_GROUP.slice_us.validator, metadata=_GROUP.slice_us.metadata
    )
    weight: int | None = field(
        default=None, validator=_GROUP.weight.validator, metadata=_GROUP.weight.metadata
    )
    override: Override | None = field(
        default=None,
        metadata=key_help(
            "With extends: merge (the default) overrides the given keys, replace overrides all "
            "keys, remove deletes the inherited group."
        ),
    )


@frozen
class ProfileTable:
    """A profile document as written, complete or extending another."""

    id: str = field(validator=_PROFILE.id.validator, metadata=_PROFILE.id.metadata)
    extends: str | None = field(
        default=None,
        validator=optional(IDENTIFIER),
        metadata=key_help(
            "Id of the profile that supplies every key that is not given here.",
            pattern=f"^{ID_PATTERN}$",
        ),
    )
    schema_version: int = field(
        default=_PROFILE.schema_version.default,
        validator=_PROFILE.schema_version.validator,
        metadata=_PROFILE.schema_version.metadata,
    )
    description: str | None = field(default=None, metadata=_PROFILE.description.metadata)
    fingerprint: Fingerprint = field(default=Fingerprint(), metadata=_PROFILE.fingerprint.metadata)
    machine_shape: ShapeRange = field(
        default=ShapeRange(), metadata=_PROFILE.machine_shape.metadata
    )
    traits: Traits = field(default=Traits(), metadata=_PROFILE.traits.metadata)
    evidence: Evidence = field(default=Evidence(), metadata=_PROFILE.evidence.metadata)
    enabled: bool = field(default=_PROFILE.enabled.default, metadata=_PROFILE.enabled.metadata)
    thread_groups: tuple[GroupTable, ...] = field(
        default=(), metadata=_PROFILE.thread_groups.metadata
    )


def completed_table(child: DerivedProfile, parent: WorkloadProfile) -> tuple[Table, list[str]]:
    """Return the table of *child* completed from *parent*, and the overrides of missing groups.

    The keys of the child win. It inherits the parent's fingerprint and ``enabled`` only if it has
    the parent's id, and never the parent's evidence.
    """
    table, base = child.given, table_of(parent)
    inherited = ["machine_shape", "traits", *(["fingerprint"] if child.id == parent.id else [])]
    tables = {name: {**base.get(name, {}), **table.get(name, {})} for name in inherited}
    groups, problems = _merged_groups(table.get("thread_groups", []), base["thread_groups"])
    own = {key: value for key, value in table.items() if key != "extends"}
    state = {"enabled": parent.enabled} if child.id == parent.id else {}
    plain = {"description": parent.description, **state, **own, **tables}
    return {**plain, "thread_groups": groups}, [
        f"{path}: {child.extends!r} has no such group{why}" for path, why in problems
    ]


def table_of(profile: WorkloadProfile) -> Table:
    """Return the keys of *profile* that differ from their default, as in a document."""
    return asdict(profile, filter=lambda field, value: value != field.default)


def _merged_groups(
    given: list[Table], inherited: list[Table]
) -> tuple[list[Table], list[tuple[str, str]]]:
    """Merge the groups. A new group comes after the inherited one named before it."""
    groups, place = [dict(group) for group in inherited], 0
    problems: list[tuple[str, str]] = []
    for number, group in enumerate(given):
        names = [merged["name"] for merged in groups]
        override = group.get("override", Override.MERGE.value)
        if group["name"] in names:
            place = names.index(group["name"])
            groups[place : place + 1] = _overridden(group, groups[place])
            place += override != Override.REMOVE.value
        elif override != Override.MERGE.value:
            there = ", ".join(names) or "none"
            problems.append(
                (f"thread_groups[{number}].override", f" to {override}; it has {there}")
            )
        elif group.get("match"):
            groups.insert(place, _plain(group))
            place += 1
        else:
            groups.append(_plain(group))
    return groups, problems


def _overridden(group: Table, inherited: Table) -> list[Table]:
    override = group.get("override", Override.MERGE.value)
    if override == Override.REMOVE.value:
        return []
    if override == Override.REPLACE.value:
        return [_plain(group)]
    merged = {**inherited, **_plain(group)}
    if merged.get("treatment") != Treatment.EXCLUSIVE.value and "cpu_fraction" not in group:
        merged.pop("cpu_fraction", None)
    return [merged]


def _plain(group: Table) -> Table:
    return {key: value for key, value in group.items() if key != "override"}
