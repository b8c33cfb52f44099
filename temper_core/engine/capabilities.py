"""The capabilities of each version of scx_layered: matchers, options, limits, arguments.

The table beside this module, ``capabilities.json``, is keyed by *crate* version, the number that
``scx_layered --version`` prints. Git tags differ from it before 1.1.0. A span reads
``[type, first version, first version without it]``. The last element is absent if all later
versions have it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import frozen

from temper_core.errors import InputError

LARGEST_LAYER_COUNT = 16
LARGEST_OR_COUNT = 32
LARGEST_REGEX_COUNT = 16
LARGEST_HINT = 1024
LARGEST_PERF = 1024
LONGEST_COMM_BYTES = 15
LONGEST_JOIN_BYTES = 12
LONGEST_CGROUP_BYTES = 4095
LAST_NUMA_NODE = 31
LAST_LLC = 63

Release = tuple[int, int, int]
VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})([-+][0-9A-Za-z.+-]*)?", re.ASCII)
TABLE = Path(__file__).with_name("capabilities.json")


@frozen
class Capabilities:
    """One version of the engine.

    ``version`` is the requested version, ``known_as`` the entry of the table that is used for it.
    ``assumed`` if the two differ. Types are the engine's own, as Rust text. ``kind_fields`` holds
    options by kind, ``common_fields`` those of every kind.
    """

    version: str
    known_as: str
    assumed: bool
    matchers: Mapping[str, str]
    kind_fields: Mapping[str, Mapping[str, str]]
    common_fields: Mapping[str, str]
    growth_algos: tuple[str, ...]
    cli_fields: frozenset[str]
    max_and_conditions: int
    layer_name_bytes: int
    has_template: bool

    @property
    def release(self) -> Release:
        """The entry's version as comparable numbers."""
        return _release(self.known_as)

    @property
    def matches_cgroup_regex(self) -> bool:
        """Whether ``CgroupRegex`` works among ``matches``. Crate 1.0.18 panics on it there."""
        return self.release >= (1, 0, 19)

    @property
    def assumption(self) -> str:
        """A sentence on the assumption. Empty if the version is known."""
        if not self.assumed:
            return ""
        return f"scx_layered {self.version} is not known; taken for {self.known_as}"


@lru_cache(maxsize=32)
def capabilities_of(version: str | None) -> Capabilities:
    """Return the capabilities of *version*, as the binary prints it. ``None`` is the newest known.

    Between two known versions the older one is used, beyond the newest the newest, both with
    ``assumed``. Raises InputError for an invalid version, or one older than all known ones.
    """
    versions: list[str] = _table()["versions"]
    if version is None:
        return _capabilities(versions[-1], versions[-1])
    requested = _parsed(version)
    older = [candidate for candidate in versions if _release(candidate) <= requested]
    if not older:
        raise InputError(
            f"scx_layered {version} is older than {versions[0]}, the oldest version that is known"
        )
    return _capabilities(version, older[-1])


def known_versions(topic: str, name: str) -> str:
    """Return the versions that have *name*, as ``from 1.0.13 on``. Empty if none has.

    *topic* is a key of the table, ``kind_fields`` too.
    """
    table = _table()[topic]
    spans = [table] if topic != "kind_fields" else list(table.values())
    entries = [span[name] for span in spans if name in span]
    if not entries:
        return ""
    (_, since, *_), (_, _, *until) = entries[0][0], entries[0][-1]
    return f"from {since} to before {until[0]}" if until else f"from {since} on"


def all_cli_fields() -> frozenset[str]:
    """Return every long option of any known version, without the dashes."""
    return frozenset(_table()["cli_fields"])


def _capabilities(version: str, known: str) -> Capabilities:
    table, release = _table(), _release(known)
    return Capabilities(
        version=version,
        known_as=known,
        assumed=".".join(map(str, _parsed(version))) != known,
        matchers=dict(_alive(table["matchers"], release)),
        kind_fields={
            kind: dict(_alive(fields, release)) for kind, fields in table["kind_fields"].items()
        },
        common_fields=dict(_alive(table["common_fields"], release)),
        growth_algos=tuple(name for name, _ in _alive(table["growth_algos"], release)),
        cli_fields=frozenset(name for name, _ in _alive(table["cli_fields"], release)),
        max_and_conditions=_step(table["max_and_conditions"], release),
        layer_name_bytes=_step(table["layer_name_bytes"], release),
        has_template=release >= _release(table["template"]),
    )


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def _alive(spans: Mapping[str, list[list[str]]], release: Release) -> Iterator[tuple[str, str]]:
    for name, entries in spans.items():
        for kind, since, *until in entries:
            if _release(since) <= release and not (until and release >= _release(until[0])):
                yield name, kind


def _step(steps: Mapping[str, int], release: Release) -> int:
    return [value for since, value in steps.items() if _release(since) <= release][-1]


def _parsed(version: str) -> Release:
    number = VERSION.fullmatch(version)
    if number is None:
        versions = _table()["versions"]
        raise InputError(
            f"{version!r} is no engine version: give what `scx_layered --version` prints, "
            f"such as {versions[-1]} (known: {versions[0]} to {versions[-1]})"
        )
    return int(number[1]), int(number[2]), int(number[3])


def _release(known: str) -> Release:
    major, minor, patch = known.split(".")
    return int(major), int(minor), int(patch)
