"""The changes of a container by a report's advice."""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from temper_core.console import Row
from temper_core.observed import number, table, text
from temper_plugin_rightsizer.kinds import INIT_KINDS

MIB = 1024 * 1024
Amounts = Mapping[str, str | None]
"""Quantities of Kubernetes by their place, such as ``requests.cpu``. None is unset."""


_FIELDS = {
    "requests.cpu": "cpu_request_millis",
    "requests.memory": "memory_request_bytes",
    "limits.cpu": "cpu_limit_millis",
    "limits.memory": "memory_limit_bytes",
}
"""The field of ``Resources`` in a report, by its place in a container."""
PLACES = frozenset(_FIELDS)


@frozen
class ContainerChange:
    """The amounts of a container that change, as they are and as they should be.

    Both have the same keys.
    """

    container: str
    is_init: bool
    before: Amounts
    after: Amounts

    @property
    def key(self) -> str:
        """The list in the pods' spec that has the container."""
        return "initContainers" if self.is_init else "containers"

    @property
    def undone(self) -> "ContainerChange":
        """The change that takes this one back."""
        return ContainerChange(self.container, self.is_init, self.after, self.before)


def change_of(row: Row) -> ContainerChange | None:
    """Return what the advice in *row* of a report changes. None if it keeps everything."""
    now, wanted = table(row, "current"), table(row, "recommended")
    changed = [
        (place, _amount(now, field), _amount(wanted, field))
        for place, field in _FIELDS.items()
        if number(wanted, field) not in {None, number(now, field)}
    ]
    if not changed:
        return None
    before = {place: amount for place, amount, _ in changed}
    after = {place: amount for place, _, amount in changed}
    is_init = text(row, "container_kind") in INIT_KINDS
    return ContainerChange(text(row, "container"), is_init, before, after)


def patched_lists(changes: Iterable[ContainerChange]) -> Mapping[str, list[Mapping[str, Any]]]:
    """Return the changed containers by their list in the pods' spec, as a strategic-merge patch."""
    lists: dict[str, list[Mapping[str, Any]]] = {}
    for change in changes:
        patch = {"name": change.container, "resources": resources_of(change.after)}
        lists.setdefault(change.key, []).append(patch)
    return lists


def resources_of(amounts: Amounts) -> Mapping[str, Mapping[str, str | None]]:
    """Return *amounts* in the form of a container's ``resources``."""
    resources: dict[str, dict[str, str | None]] = {}
    for place, amount in amounts.items():
        kind, _, resource = place.partition(".")
        resources.setdefault(kind, {})[resource] = amount
    return resources


def as_quantity(size: int) -> str:
    """Return bytes as a quantity of Kubernetes, in MiB where they are whole."""
    return f"{size // MIB}Mi" if size % MIB == 0 else str(size)


def _amount(resources: Row, field: str) -> str | None:
    value = number(resources, field)
    if value is None:
        return None
    return f"{value:.0f}m" if field.endswith("millis") else as_quantity(round(value))
