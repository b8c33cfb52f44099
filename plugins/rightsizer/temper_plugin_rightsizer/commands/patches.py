"""A report as strategic-merge patches, one for each workload."""

from collections.abc import Iterator, Mapping
from typing import Any

from temper_core.console import Row, printable
from temper_core.observed import rows, text
from temper_plugin_rightsizer.changes import change_of, patched_lists
from temper_plugin_rightsizer.kinds import TEMPLATES

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
        changes = patched_lists(filter(None, map(change_of, containers)))
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


def _patch(
    kind: str, name: str, namespace: str, changes: Mapping[str, list[Any]]
) -> Mapping[str, Any]:
    template = TEMPLATES[kind]
    metadata = {"name": name, "namespace": namespace}
    head = {"apiVersion": template.version, "kind": kind, "metadata": metadata}
    return {**head, **template.nested(changes)}


def _reasons(containers: list[Row]) -> Iterator[str]:
    for row in containers:
        reasons = row.get("reasons")
        for reason in reasons if isinstance(reasons, list) else ():
            yield f"# {printable(text(row, 'container'))}: {printable(str(reason))}\n"


def _left_out(row: Row, why: str) -> str:
    name = "/".join(filter(None, (text(row, key) for key in ("namespace", "owner", "pod"))))
    container = printable(text(row, "container"))
    return f"# {printable(name)}, container {container}: {printable(why)}\n"
