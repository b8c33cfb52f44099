"""Generates the table of the chart's values, and the JSON schema of the agent's settings.

Cog writes the table into ``helm.md``. ``python docs/helm_reference.py`` writes the settings into
``values.schema.json``, so that helm refuses wrong settings before it installs anything.
"""

import json
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs
import yaml

from temper_core.settings.models import Settings
from temper_plugin_dashboard.options import Options as DashboardOptions
from temper_plugin_kubernetes.options import Options
from temper_plugin_linter.limits import Limits
from temper_plugin_power.settings.power import PowerSettings
from temper_plugin_rightsizer.options import Options as RightsizerOptions
from temper_plugin_tracer.options import Options as TracerOptions

CHART = Path(__file__).parents[1] / "deploy/helm/temper"
SCHEMA = CHART / "values.schema.json"
THE_CHARTS_OWN = frozenset(
    {
        "node",
        "run_directory",
        "state_directory",
        "server.listen",
        "server.token_file",
        "profiles.directory",
        "safe_mode.file",
        "safe_mode.state",
    }
)
"""Settings that only the chart sets, because they depend on its other objects."""

PLUGINS = {
    "dashboard": DashboardOptions,
    "kubernetes": Options,
    "linter": Limits,
    "power": PowerSettings,
    "rightsizer": RightsizerOptions,
    "tracer": TracerOptions,
}
"""The image's plugins that take settings, each with its own table."""

_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_BOUNDS = {">=": "minimum", "<=": "maximum", ">": "exclusiveMinimum", "<": "exclusiveMaximum"}
Schema = dict[str, Any]


def settings_schema() -> Schema:
    """Return the JSON schema of the agent's settings file, without the chart's own settings."""
    schema = _record(Settings, "")
    tables = {name: _record(model, f"plugins.{name}") for name, model in PLUGINS.items()}
    schema["properties"]["plugins"]["properties"] = tables
    return schema


def _record(model: type, path: str) -> Schema:
    hints = get_type_hints(model)
    properties = {
        field.name: _field(field, hints[field.name], f"{path}.{field.name}".lstrip("."))
        for field in attrs.fields(model)
        if f"{path}.{field.name}".lstrip(".") not in THE_CHARTS_OWN
    }
    required = [field.name for field in attrs.fields(model) if field.default is attrs.NOTHING]
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**schema, "required": required} if required else schema


def _field(field: "attrs.Attribute[Any]", hint: object, path: str) -> Schema:
    description = {"description": field.metadata["help"]} if "help" in field.metadata else {}
    return {**description, **_type(hint, path), **_bounds(field.validator)}


def _type(hint: Any, path: str) -> Schema:  # noqa: ANN401 - any type of a setting
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        return _type(next(kind for kind in inner if kind is not types.NoneType), path)
    if origin is tuple:
        return _list(inner, path)
    if attrs.has(hint):
        return _record(hint, path)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    # The tables of plugins are of any kind. Plugins outside the image check their own settings.
    value = _NAMES.get(inner[-1], "object") if inner else "object"
    return {"type": "object", "additionalProperties": {"type": value}}


def _list(items: tuple[Any, ...], path: str) -> Schema:
    schema = {"type": "array", "items": _type(items[0], path)}
    if items[1:] == (...,):
        return schema
    return {**schema, "minItems": len(items), "maxItems": len(items)}


def _bounds(validator: Any) -> Schema:  # noqa: ANN401 - attrs has no common type of validators
    """Return a validator's bounds and allowed values as a schema."""
    bounds: Schema = {}
    for part in getattr(validator, "_validators", (validator,)):
        if operator := getattr(part, "compare_op", None):
            bounds[_BOUNDS[operator]] = part.bound
        elif options := getattr(part, "options", None):
            bounds["enum"] = list(options)
    return bounds


def values_reference() -> str:
    """Render every value with its default and meaning, one table for each top-level key."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return "\n".join(_sections(schema["properties"], values))


def _sections(properties: Mapping[str, Schema], values: Mapping[str, Any]) -> Iterator[str]:
    header = ["| value | default | meaning |", "| --- | --- | --- |"]
    plain = {
        key: value_schema
        for key, value_schema in properties.items()
        if "properties" not in value_schema
    }
    yield "\n".join([*header, *_rows(plain, values, ""), ""])
    for key, schema in properties.items():
        if key not in plain:
            rows = _rows(schema["properties"], values[key], f"{key}.")
            yield "\n".join([f"### `{key}`", "", schema["description"], "", *header, *rows, ""])


def _rows(
    properties: Mapping[str, Schema], values: Mapping[str, Any], prefix: str
) -> Iterator[str]:
    for key, schema in properties.items():
        if key not in values:
            continue
        if "properties" in schema:
            yield from _rows(schema["properties"], values[key], f"{prefix}{key}.")
        else:
            default = json.dumps(values[key]).replace("|", "\\|")
            meaning = schema["description"].replace("|", "\\|")
            yield f"| `{prefix}{key}` | `{default}` | {meaning} |"


def main() -> None:
    """Write the settings into the chart's schema."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    schema["$defs"]["settings"] = settings_schema()
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    SCHEMA.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
