"""What a recording says of a node, and what it leaves out: the parts of its lines, ready for JSON.

``docs/recordings.md`` describes the file. A key is left out where its value is the default.
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
"""Of a recording's text: what one may write and read in all."""
LONGEST_LINE_BYTES = 16 * 1024 * 1024
MOST_PODS = 5_000
MOST_CPUS = 4_096
OURS = "temper.codes/"
TOLD_ELSEWHERE = frozenset(
    ("node", "machine", "plan", "violations", "invariants", "plugins", "profile_failures")
)
"""Fields of a snapshot that no look has: the lines before tell them, or a simulation does."""
DIGITS = 6

_SECRET = re.compile(
    r"token|secret|passw|passphrase|credential|api_?key|private|auth", re.IGNORECASE
)
_LOGIN = re.compile(r"://[^/\s]*@")

Json = dict[str, Any]


def recording_document(snapshot: Snapshot, settings: Settings, catalogue: ProfileCatalogue) -> Json:
    """Say all that one moment adds to a recording: ``head``, ``profiles``, ``plan``, ``look``.

    Without annotations of others than Temper, and without settings of plugins that are secrets by
    their names. ``left_out`` of the head names those.
    """
    told, left_out = _plain_settings(settings)
    return {
        "head": {
            "schema_version": SCHEMA_VERSION,
            "temper": __version__,
            "node": snapshot.node,
            "plugins": [
                {"name": each.name, "version": each.version}
                for each in snapshot.plugins
                if each.state == "active"
            ],
            "left_out": left_out,
            "settings": told,
            "machine": plain(snapshot.machine),
        },
        "profiles": {
            "profiles": plain(catalogue.profiles),
            "failures": plain(catalogue.failures),
        },
        "plan": None if snapshot.plan is None else _plan_part(snapshot.plan),
        "look": _look_part(snapshot),
    }


def plain(value: object, digits: int | None = None) -> Any:  # noqa: ANN401 - JSON
    """Say records in JSON. Numbers rounded to *digits*, and 0 for those without an end."""
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
        # One bad number must not spoil the recording for whoever reads it.
        return round(value, digits) if math.isfinite(value) else 0.0
    return plain_value(value)


def _fields_of(kind: type[Any]) -> Sequence[tuple[str, object]]:
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = [(each.name, _default_of(each)) for each in attrs.fields(kind)]
    return found


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
    """Say a plan with its pods. What pods share, their profiles, is said once."""
    profiles = list(dict.fromkeys(filter(None, (each.profile for each in plan.assignments))))
    return {
        "layers": plain(plan.layers),
        "pods": [plain(_without_others_words(each.pod)) for each in plan.assignments],
        "profiles": plain(profiles),
        "assignments": [_assigned(each, profiles) for each in plan.assignments],
        "notes": plain(plan.notes),
        "hints": dict(plan.hints),
        "steering": plain(plan.steering),
    }


def _assigned(assignment: Assignment, profiles: Sequence[LoadedProfile]) -> Json:
    told = plain(evolve(assignment, profile=None))
    del told["pod"]
    if assignment.profile is not None:
        told["profile"] = profiles.index(assignment.profile)
    return {**told}


def _without_others_words(pod: Pod) -> Pod:
    """Leave out the annotations that are none of ours: who knows what they say."""
    kept = {
        name: value
        for name, value in pod.annotations.items()
        if name.startswith(OURS) or name in PROFILE_ANNOTATIONS
    }
    return evolve(pod, annotations=kept)


def _plain_settings(settings: Settings) -> tuple[Json, list[str]]:
    """Say all settings, defaults included: another version may have other ones."""
    left_out: list[str] = []
    told: Json = {name: _in_full(getattr(settings, name)) for name, _ in _fields_of(Settings)}
    told["plugins"] = {
        name: _without_secrets(table, f"settings.plugins.{name}", left_out)
        for name, table in sorted(settings.plugins.items())
    }
    return told, left_out


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
