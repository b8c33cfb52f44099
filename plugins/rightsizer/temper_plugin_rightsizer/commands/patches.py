"""A report as strategic-merge patches, one for each workload."""

from collections.abc import Iterator, Mapping
from typing import Any

from temper_core.console import Row, printable
from temper_core.observed import number, rows, table, text

MIB = 1024 * 1024
TEMPLATES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Deployment": ("apps/v1", ("spec", "template", "spec")),
    "StatefulSet": ("apps/v1", ("spec", "template", "spec")),
    "DaemonSet": ("apps/v1", ("spec", "template", "spec")),
    "CronJob": ("batch/v1", ("spec", "jobTemplate", "spec", "template", "spec")),
}
"""The version of each kind with a template that may change, and where its pods' spec is."""
INIT_KINDS = ("init", "sidecar")
WHY_NOT = {
    "ReplicaSet": "its Deployment is not known on the node; ask kubectl temper or --prometheus",
    "Job": "the template of a Job cannot change",
}


def as_patches(document: Row) -> str:
    """Return the patches as a YAML stream. Comments name the containers that have none.

    A patch has only what changes, so that it can be applied again with the same result.
    """
    import yaml  # noqa: PLC0415 - slow

    by_owner: dict[tuple[str, str], list[Row]] = {}
    for row in rows(document, "containers"):
        if row.get("keeps") is not True:
            by_owner.setdefault((text(row, "namespace"), text(row, "owner")), []).append(row)
    parts = []
    for (namespace, owner), containers in sorted(by_owner.items()):
        kind, _, name = owner.partition("/")
        managers = {text(row, "managed_by") for row in containers} - {""}
        changes = _changes(containers)
        if kind not in TEMPLATES or managers:
            why = WHY_NOT.get(kind, "only workloads with a template are patched")
            for row in containers:
                manager = text(row, "managed_by")
                parts.append(_left_out(row, f"{manager} sets the requests" if manager else why))
        elif changes:
            patch = _patch(kind, name, namespace, changes)
            comments = "".join(_reasons(containers))
            parts.append(f"---\n{comments}{yaml.safe_dump(patch, sort_keys=False)}")
    return "".join(parts).rstrip("\n") or "# no workload should change"


def _changes(containers: list[Row]) -> Mapping[str, list[Any]]:
    """Return the changed containers by their list in the pods' spec."""
    changes: dict[str, list[Any]] = {}
    for row in containers:
        change = change_of(row)
        if change is not None:
            is_init = text(row, "container_kind") in INIT_KINDS
            changes.setdefault("initContainers" if is_init else "containers", []).append(change)
    return changes


def _patch(
    kind: str, name: str, namespace: str, changes: Mapping[str, list[Any]]
) -> Mapping[str, Any]:
    version, path = TEMPLATES[kind]
    spec: dict[str, Any] = dict(changes)
    for key in reversed(path):
        spec = {key: spec}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **spec}


def change_of(row: Row) -> Mapping[str, Any] | None:
    """Return the changed resources of a container, None without any."""
    now, wanted = table(row, "current"), table(row, "recommended")
    resources = {
        field: quantities
        for field, single in (("requests", "request"), ("limits", "limit"))
        if (quantities := dict(_quantities(now, wanted, single)))
    }
    return {"name": text(row, "container"), "resources": resources} if resources else None


def _quantities(now: Row, wanted: Row, field: str) -> Iterator[tuple[str, str]]:
    millis, size = number(wanted, f"cpu_{field}_millis"), number(wanted, f"memory_{field}_bytes")
    if millis is not None and millis != number(now, f"cpu_{field}_millis"):
        yield "cpu", f"{millis:.0f}m"
    if size is not None and size != number(now, f"memory_{field}_bytes"):
        yield "memory", as_quantity(round(size))


def as_quantity(size: int) -> str:
    """Return bytes as a quantity of Kubernetes, in MiB where they are whole."""
    return f"{size // MIB}Mi" if size % MIB == 0 else str(size)


def _reasons(containers: list[Row]) -> Iterator[str]:
    for row in containers:
        reasons = row.get("reasons")
        for reason in reasons if isinstance(reasons, list) else ():
            yield f"# {printable(text(row, 'container'))}: {printable(str(reason))}\n"


def _left_out(row: Row, why: str) -> str:
    name = "/".join(filter(None, (text(row, key) for key in ("namespace", "owner", "pod"))))
    container = printable(text(row, "container"))
    return f"# {printable(name)}, container {container}: {printable(why)}\n"
