"""A profile as a table, and as TOML again: a trial needs the text of each variant."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from temper_core import DocumentError, WorkloadProfile, parse_profile

Table = Mapping[str, Any]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def complete_table(text: str, source: str) -> Table:
    """Return the table of a complete profile.

    Raises DocumentError, which names *source*, if it is no profile or extends another one.
    """
    profile: WorkloadProfile = parse_profile(text, source)
    if not profile.thread_groups:
        raise DocumentError(source, ["extends: must be absent; a trial takes a complete profile"])
    return tomllib.loads(text)


def toml_of(table: Table) -> str:
    """Return *table* as TOML. Tables within its tables are written inline."""
    return "\n".join(_lines(table)) + "\n"


def _lines(table: Table) -> Iterator[str]:
    scalars = {key: value for key, value in table.items() if not _is_section(value)}
    yield from _pairs(scalars)
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from ("", f"[{_key(key)}]", *_pairs(value))
        elif _is_section(value):
            for row in value:
                yield from ("", f"[[{_key(key)}]]", *_pairs(row))


def _is_section(value: object) -> bool:
    is_rows = isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
    return isinstance(value, Mapping) or is_rows


def _pairs(table: Table) -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield from (f"{_key(key)} = [", *(f"    {_value(row)}," for row in value), "]")
        else:
            yield f"{_key(key)} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool | str):
        # A basic string of TOML takes the escapes of JSON, and no DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _value(key)
