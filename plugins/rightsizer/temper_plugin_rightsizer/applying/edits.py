"""Checked edits of workloads and pods, and how they are sent to the API server."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

from temper_core import InputError
from temper_core.console import Row
from temper_core.observed import rows, table, text
from temper_kube.api_server import STRATEGIC_MERGE_PATCH, ApiServer
from temper_kube.failures import ForbiddenError, NotFoundError, RefusalError
from temper_plugin_rightsizer.applying.record import (
    KEY,
    as_annotation,
    is_same,
    merged,
    recorded,
    standing,
)
from temper_plugin_rightsizer.changes import PLACES, ContainerChange, patched_lists
from temper_plugin_rightsizer.kinds import POD, TEMPLATES, Kind

MANAGER = "fieldManager=temper-rightsizer"
DRY_RUN = f"{MANAGER}&dryRun=All"
REFUSALS = (InputError, ForbiddenError, NotFoundError, RefusalError)
"""Why one object is left as it is. Other objects may be changed all the same."""


@frozen
class Edit:
    """A checked change of one object. *record* is its annotation afterwards, None for none.

    *record_before* is the annotation that is put back if writing *record* was in vain.
    """

    kind: str
    namespace: str
    name: str
    version: str
    changes: tuple[ContainerChange, ...]
    record: str | None
    record_before: str | None

    @property
    def title(self) -> str:
        """The object as a user names it."""
        return f"{self.namespace}/{self.kind}/{self.name}"


def applying(kind: str, item: Row, changes: Iterable[ContainerChange]) -> Edit:
    """Return the edit that makes *changes* in the object *item*.

    Raise InputError if the object has other amounts than those that the report was made with. An
    amount that it does not set may come from a default of its namespace.
    """
    checked = tuple(_checked(kind, item, changes, is_exact=False))
    record = merged(_still_recorded(kind, item), checked)
    return _edit(kind, item, checked, as_annotation(record))


def undoing(kind: str, item: Row) -> Edit | None:
    """Return the edit that takes back what was applied to *item*. None if nothing was.

    Raise InputError if another user has changed the amounts since, or the annotation is malformed.
    """
    record = recorded(item)
    if not record:
        return None
    undone = (change.undone for change in record)
    return _edit(kind, item, tuple(_checked(kind, item, undone, is_exact=True)), None)


def send(api: ApiServer, edit: Edit, *, is_dry: bool) -> None:
    """Make the edit. With *is_dry* the API server only reports whether it would accept it.

    Raise one of REFUSALS with the server's reason, and MachineError without a server.
    """
    sender: Callable[..., None] = _resize_pod if edit.kind == "Pod" else _patch_template
    sender(api, edit, DRY_RUN if is_dry else MANAGER)


def _edit(kind: str, item: Row, changes: tuple[ContainerChange, ...], record: str | None) -> Edit:
    metadata = table(item, "metadata")
    namespace, name, version = (
        text(metadata, key) for key in ("namespace", "name", "resourceVersion")
    )
    before = record and text(table(metadata, "annotations"), KEY)
    return Edit(kind, namespace, name, version, changes, record, before or None)


def _still_recorded(kind: str, item: Row) -> Iterator[ContainerChange]:
    """Yield what was applied to the object and is still there. Raise InputError."""
    containers = _containers(kind, item)
    for change in recorded(item):
        found = containers.get((change.key, change.container))
        if found is not None:
            left = standing(change, {place: _present(found, place) for place in PLACES})
            if left.after:
                yield left


def _checked(
    kind: str, item: Row, changes: Iterable[ContainerChange], *, is_exact: bool
) -> Iterator[ContainerChange]:
    """Yield *changes* with the amounts of the object as they are spelled in it."""
    containers = _containers(kind, item)
    for change in changes:
        found = containers.get((change.key, change.container))
        if found is None:
            raise InputError(f"there is no container {change.container!r} any more")
        present = {place: _present(found, place) for place in change.before}
        for place, amount in present.items():
            is_default = amount is None and not is_exact
            # A resize that was recorded, and of which no answer came, may not have happened.
            is_undone = is_exact and is_same(place, amount, change.after[place])
            if not (is_default or is_undone or is_same(place, amount, change.before[place])):
                raise InputError(
                    f"{place} of container {change.container!r} is {amount or 'not set'}, and was "
                    f"{change.before[place] or 'not set'}: it has been changed since"
                )
        yield evolve(change, before=present)


def _containers(kind: str, item: Row) -> Mapping[tuple[str, str], Row]:
    """Return the containers of the object by their list and name."""
    pod_spec = _kind(kind).pod_spec(item)
    return {
        (key, text(each, "name")): each
        for key in ("initContainers", "containers")
        for each in rows(pod_spec, key)
    }


def _kind(kind: str) -> Kind:
    return POD if kind == "Pod" else TEMPLATES[kind]


def _present(container: Row, place: str) -> str | None:
    field, _, resource = place.partition(".")
    amount = table(table(container, "resources"), field).get(resource)
    return None if amount is None else str(amount)


def _patch_template(api: ApiServer, edit: Edit, query: str) -> None:
    kind = TEMPLATES[edit.kind]
    body = {**_metadata(edit.record, edit.version), **kind.nested(patched_lists(edit.changes))}
    path = kind.path(edit.namespace, edit.name)
    api.patch(f"{path}?{query}", body, STRATEGIC_MERGE_PATCH)


def _resize_pod(api: ApiServer, edit: Edit, query: str) -> None:
    """Resize a running pod, and write its record. The subresource ``resize`` takes no metadata.

    The record is written before a resize and removed after an undo. So a pod whose size has changed
    has a record, whatever is interrupted.
    """
    path = POD.path(edit.namespace, edit.name)
    if query == DRY_RUN:
        _send_sizes(api, path, edit, query)
    elif edit.record is None:
        version = _send_sizes(api, path, edit, query)
        _annotate(api, path, edit.record, version)
    else:
        version = _annotate(api, path, edit.record, edit.version)
        try:
            _send_sizes(api, path, evolve(edit, version=version), query)
        except REFUSALS:
            # Without an answer the pod may have been resized, and keeps the record.
            _annotate(api, path, edit.record_before)
            raise


def _send_sizes(api: ApiServer, path: str, edit: Edit, query: str) -> str:
    """Send the sizes of a pod. Return the version that it has then."""
    sizes = POD.nested(patched_lists(edit.changes))
    body = {"metadata": {"resourceVersion": edit.version}, **sizes}
    return _version(api.patch(f"{path}/resize?{query}", body, STRATEGIC_MERGE_PATCH))


def _annotate(api: ApiServer, path: str, record: str | None, version: str = "") -> str:
    """Write the record of a pod, of any version by default. Return the version that it has then."""
    return _version(
        api.patch(f"{path}?{MANAGER}", _metadata(record, version), STRATEGIC_MERGE_PATCH)
    )


def _version(item: Row) -> str:
    return text(table(item, "metadata"), "resourceVersion")


def _metadata(record: str | None, version: str) -> Mapping[str, Any]:
    """Return the patch of the annotation, for this *version* of the object alone if it is given."""
    checked = {"resourceVersion": version} if version else {}
    return {"metadata": {**checked, "annotations": {KEY: record}}}
