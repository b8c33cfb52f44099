"""A report as values for Helm: the resources of each container that should change."""

from collections.abc import Mapping
from typing import Any

from temper_core.console import Row, printable
from temper_core.observed import text
from temper_plugin_rightsizer.changes import change_of, resources_of
from temper_plugin_rightsizer.commands.formats import needs_change

HEAD = """\
# Each chart names its values differently: move each "resources" to where the chart has it.
# NAMESPACE -> WORKLOAD -> CONTAINER -> resources
"""


def as_values(document: Row) -> str:
    """Return YAML with what changes, by namespace, workload and container."""
    import yaml  # noqa: PLC0415 - slow

    values: dict[str, dict[str, dict[str, Any]]] = {}
    left_out = ""
    for row in needs_change(document):
        change = change_of(row)
        if change is None:
            continue
        workload = text(row, "owner").partition("/")[2] or text(row, "pod")
        if manager := text(row, "managed_by"):
            left_out += f"# {printable(workload)}: {printable(manager)} sets the requests\n"
            continue
        of_namespace = values.setdefault(text(row, "namespace"), {})
        containers: Mapping[str, Any] = of_namespace.setdefault(workload, {})
        resources = resources_of(change.after)
        of_namespace[workload] = {**containers, change.container: {"resources": resources}}
    if not values:
        return f"{left_out}# no workload should change"
    return f"{HEAD}{left_out}{yaml.safe_dump(values, sort_keys=True)}".rstrip("\n")
