"""The JSON Schema of profile documents, generated from the records that read them.

Editors use it to complete and check a TOML file. Checks beyond a schema, such as a pattern that
can match no name, happen only when the profile is read.
"""

from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin

import attrs

from temper_core.profiles.tables import ProfileTable, Table

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest dialect that the TOML language servers of editors support."""
IDENTITY = "https://temper.codes/schemas/profile.schema.json"
PRIMITIVES: dict[Any, Table] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
}


def profile_schema() -> Table:
    """Return the schema of a profile, complete or extending another."""
    whole = _record(ProfileTable)
    return {
        "$schema": DIALECT,
        "$id": IDENTITY,
        "title": "Temper workload profile, schema version 1",
        **whole,
        "if": {"required": ["extends"]},
        "else": _complete_alone(),
    }


def _complete_alone() -> Table:
    """Return the rules without ``extends``: thread groups are required, overrides are refused."""
    group = {"not": {"required": ["override"]}}
    return {
        "required": ["thread_groups"],
        "properties": {"thread_groups": {"minItems": 1, "items": group}},
    }


def _record(kind: Any) -> Table:  # noqa: ANN401 - any attrs class
    fields = attrs.fields(attrs.resolve_types(kind))
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [entry.name for entry in fields if entry.default is attrs.NOTHING],
        "properties": {entry.name: _key(entry) for entry in fields},
    }


def _key(field: "attrs.Attribute[Any]") -> Table:
    more = {"description": field.metadata["help"]} if "help" in field.metadata else {}
    return {**more, **_kind(field.type, field.metadata.get("schema", {}))}


def _kind(kind: Any, limits: Table) -> Table:  # noqa: ANN401 - any annotation
    if get_origin(kind) in (Union, UnionType):
        members = [member for member in get_args(kind) if member is not type(None)]
        options = [_kind(member, limits) for member in members]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if get_origin(kind) is tuple:
        return _list(get_args(kind), limits)
    if attrs.has(kind):
        return {**_record(kind), **limits}
    if issubclass(kind, Enum):
        return {"enum": [member.value for member in kind], **limits}
    return {**PRIMITIVES[kind], **limits}


def _list(items: tuple[Any, ...], limits: Table) -> Table:
    if items[-1] is ...:
        return {"type": "array", "items": _kind(items[0], limits)}
    size = {"minItems": len(items), "maxItems": len(items)}
    return {"type": "array", "items": _kind(items[0], limits), **size}
