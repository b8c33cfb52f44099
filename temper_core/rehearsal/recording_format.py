"""The content of a recording's lines, ready for JSON.

``docs/recordings.md`` describes the file. A key with the default value is left out.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import attrs
from attrs import evolve

from temper_core import __version__
from temper_core.plain_json import plain_value
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.pods import PROFILE_ANNOTATIONS, Pod
from temper_core.records.profiles import LoadedProfile
from temper_core.records.snapshots import Snapshot
from temper_core.settings.models import Settings

SCHEMA_VERSION = 1
LARGEST_BYTES = 256 * 1024 * 1024
"""Limit on a recording's text, for writing and reading."""
LONGEST_LINE_BYTES = 16 * 1024 * 1024
MOST_PODS = 5_000
MOST_CPUS = 4_096
OURS = "temper.codes/"
TOLD_ELSEWHERE = frozenset(
    ("node", "machine", "plan", "violations", "invariants", "plugins", "profile_failures")
)
"""Fields of a snapshot that a look omits. They are in other lines, or a simulation makes them."""
DIGITS = 6

_SECRET = re.compile(
    r"token|secret|passw|passphrase|credential|api_?key|private|auth", re.IGNORECASE
)
_LOGIN = re.compile(r"://[^/\s]*@")

Json = dict[str, Any]


def recording_document(snapshot: Snapshot, settings: Settings, catalogue: ProfileCatalogue) -> Json:
    """Return the parts of a recording at one moment: ``head``, ``profiles``, ``plan``, ``look``.

    Annotations that are not Temper's are left out. So are settings of plugins that look like
    secrets. ``left_out`` of the head lists these.
    """
    plain_settings, left_out = _plain_settings(settings)
    return {
        "head": {
            "schema_version": SCHEMA_VERSION,
            "temper": __version__,
            "node": snapshot.node,
            "plugins": [
                {"name": plugin.name, "version": plugin.version}
                for plugin in snapshot.plugins
                if plugin.is_in_use
            ],
            "left_out": left_out,
            "settings": plain_settings,
            "machine": plain(snapshot.machine),
        },
        "profiles": {
            "profiles": plain(catalogue.profiles),
            "failures": plain(catalogue.first_failures),
        },
        "plan": None if snapshot.plan is None else _plan_part(snapshot.plan),
        "look": _look_part(snapshot),
    }


def plain(value: object, digits: int | None = None) -> Any:  # noqa: ANN401 - JSON
    """Return records as JSON values. Floats are rounded to *digits*, those not finite become 0."""
    if attrs.has(type(value)):
        return {
            name: plain(inner, digits)
            for name, default in _fields_of(type(value))
            if (inner := getattr(value, name)) != default
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(inner, digits) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, digits) for inner in value]
    if type(value) is float and digits is not None:
        # One number that JSON cannot express must not make the recording unreadable.
        return round(value, digits) if math.isfinite(value) else 0.0
    return plain_value(value)


def _fields_of(kind: type[Any]) -> Sequence[tuple[str, object]]:
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = _FIELDS[kind] = [
            (attribute.name, _default_of(attribute)) for attribute in attrs.fields(kind)
        ]
    return fields


_FIELDS: dict[type[Any], Sequence[tuple[str, object]]] = {}


def _default_of(field: "attrs.Attribute[Any]") -> object:
    made: Any = field.default
    is_made = hasattr(made, "factory") and not made.takes_self
    return made.factory() if is_made else made


def _look_part(snapshot: Snapshot) -> Json:
    return {
        name: plain(value, DIGITS)
        for name, default in _fields_of(Snapshot)
        if name not in TOLD_ELSEWHERE and (value := getattr(snapshot, name)) != default
    }


def _plan_part(plan: LayerPlan) -> Json:
    """Return a plan with its pods as JSON. Profiles that pods share are written once."""
    profiles = list(
        dict.fromkeys(filter(None, (assignment.profile for assignment in plan.assignments)))
    )
    return {
        "layers": plain(plan.layers),
        "pods": [plain(_without_others_words(assignment.pod)) for assignment in plan.assignments],
        "profiles": plain(profiles),
        "assignments": [_assigned(assignment, profiles) for assignment in plan.assignments],
        "notes": plain(plan.notes),
        "hints": dict(plan.hints),
        "steering": plain(plan.steering),
    }


def _assigned(assignment: Assignment, profiles: Sequence[LoadedProfile]) -> Json:
    document = plain(evolve(assignment, profile=None))
    del document["pod"]
    if assignment.profile is not None:
        document["profile"] = profiles.index(assignment.profile)
    return {**document}


def _without_others_words(pod: Pod) -> Pod:
    """Leave out annotations that are not Temper's, since they may contain anything."""
    annotations = {
        name: value
        for name, value in pod.annotations.items()
        if name.startswith(OURS) or name in PROFILE_ANNOTATIONS
    }
    return evolve(pod, annotations=annotations)


def _plain_settings(settings: Settings) -> tuple[Json, list[str]]:
    """Return all settings, including defaults, which may differ in another version."""
    left_out: list[str] = []
    document: Json = {name: _in_full(getattr(settings, name)) for name, _ in _fields_of(Settings)}
    document["plugins"] = {
        name: _without_secrets(table, f"settings.plugins.{name}", left_out)
        for name, table in sorted(settings.plugins.items())
    }
    return document, left_out


def _in_full(value: object) -> Any:  # noqa: ANN401 - JSON
    if attrs.has(type(value)):
        return {name: _in_full(getattr(value, name)) for name, _ in _fields_of(type(value))}
    if isinstance(value, list | tuple):
        return [_in_full(inner) for inner in value]
    return plain(value)


def _without_secrets(table: Mapping[str, Any], path: str, left_out: list[str]) -> Json:
    return dict(_harmless(table, path, left_out))


def _harmless(
    table: Mapping[str, Any], path: str, left_out: list[str]
) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield key, _without_secrets(value, f"{path}.{key}", left_out)
        elif _is_secret(key, value):
            left_out.append(f"{path}.{key}")
        else:
            yield key, plain(value)


def _is_secret(key: str, value: object) -> bool:
    if isinstance(value, bool | int | float):
        return False
    return bool(_SECRET.search(key)) or bool(_LOGIN.search(str(value)))
