"""Generates the page of settings from the models. Cog writes it into ``settings.md``."""

import json
from collections.abc import Iterator
from typing import Any

import attrs

from temper_core.cli.plugin_tables import declared_models
from temper_core.plugin_host.first_party import first_party_host
from temper_core.settings.models import Settings, WorkloadRule


def settings_reference() -> str:
    """Render every table with its keys, defaults and meaning."""
    sections = list(_sections(Settings(), ""))
    rule_keys = ", ".join(f"`{field.name}`" for field in attrs.fields(WorkloadRule))
    sections.append(
        "## `[[workloads]]`\n\nRules for hosts without Kubernetes; see pod-sources.md. "
        f"Keys: {rule_keys}.\n"
    )
    sections.append(
        "## `[plugins.<name>]`\n\nA plugin's own table, given to its hooks. "
        "Those of the plugins that come with the agent follow.\n"
    )
    for name, model in sorted(declared_models(first_party_host()).items()):
        sections += _sections(model(), f"plugins.{name}")
    return "\n".join(sections)


def _sections(model: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - any settings class
    fields = attrs.fields(type(model))
    plain = [field for field in fields if "help" in field.metadata]
    if plain:
        yield _section(model, path, plain)
    for field in fields:
        if attrs.has(type(getattr(model, field.name))):
            yield from _sections(getattr(model, field.name), f"{path}.{field.name}".lstrip("."))


def _section(model: Any, path: str, fields: list[Any]) -> str:  # noqa: ANN401 - the same
    heading = f"## `[{path}]`" if path else "## Top level"
    summary = (type(model).__doc__ or "").partition("\n")[0]
    rows = [
        f"| `{field.name}` | `{_value(getattr(model, field.name))}` | {field.metadata['help']} |"
        for field in fields
    ]
    return "\n".join(
        [heading, "", summary, "", "| key | default | meaning |", "| --- | --- | --- |", *rows, ""]
    )


def _value(value: object) -> str:
    return "absent" if value is None else json.dumps(value)
