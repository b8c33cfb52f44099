"""Reads pods from files: as objects, in lists, and as pod templates of workloads."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from temper_core import DocumentError
from temper_plugin_density.object_files import read_objects

KNOWN_CLASSES: Mapping[str, int] = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
    "temper-critical": 1_000_000,
    "temper-high": 100_000,
    "temper-normal": 0,
    "temper-low": -100,
    "temper-background": -1000,
}
"""Priorities of the classes that Kubernetes and the chart install. Others need an API server."""

TEMPLATES = (("spec", "template"), ("spec", "jobTemplate", "spec", "template"))


@frozen
class Manifest:
    """A pod or a pod template, with the kind and name of its object."""

    subject: str
    pod: Mapping[str, Any]


def read_manifests(path: Path) -> tuple[Manifest, ...]:
    """Return every pod of a file (``-`` is standard input). Raise DocumentError if it has none."""
    source = str(path)
    manifests = tuple(
        manifest
        for document in read_objects(path, source)
        for item in _items(document, source)
        for manifest in _manifests(item)
    )
    if not manifests:
        raise DocumentError(source, ["has neither a Pod nor a pod template"])
    return manifests


def _items(document: object, source: str) -> Iterator[object]:
    """Yield the objects of a List. The items of a PodList from the API server have no kind.

    Raise DocumentError for a List in a List: by aliases a short file could hold billions of pods.
    """
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list):
        yield document
        return
    for item in items:
        if isinstance(item, dict):
            if "items" in item:
                raise DocumentError(source, ["has a List in a List, which is not read"])
            yield {"kind": "Pod", **item}


def _manifests(document: object) -> Iterator[Manifest]:
    if not isinstance(document, dict):
        return
    if document.get("kind") == "Pod":
        yield Manifest(_subject(document), _as_admitted(document))
    else:
        for steps in TEMPLATES:
            template = _below(document, steps)
            if isinstance(template, dict):
                yield Manifest(_subject(document), _as_admitted({"metadata": {}, **template}))


def _below(document: Mapping[str, Any], steps: tuple[str, ...]) -> object:
    value: object = document
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _subject(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    name = known.get("name") or known.get("generateName") or "unnamed"
    return f"{document.get('kind')} {known.get('namespace', 'default')}/{name}"


def _as_admitted(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in the fields that the API server fills in before it calls the webhook."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return pod
    changed = {key: _with_requests(value) for key, value in spec.items()}
    priority = KNOWN_CLASSES.get(str(spec.get("priorityClassName")))
    if priority is not None:
        changed.setdefault("priority", priority)
    return {**pod, "spec": changed}


def _with_requests(containers: object) -> object:
    """Set missing requests of containers to their limits, as Kubernetes does."""
    if not isinstance(containers, list):
        return containers
    return [
        _with_request(container) if isinstance(container, dict) else container
        for container in containers
    ]


def _with_request(container: Mapping[str, Any]) -> Mapping[str, Any]:
    resources = container.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if not isinstance(resources, dict) or not isinstance(limits, dict):
        return container
    requests = resources.get("requests")
    merged = {**limits, **requests} if isinstance(requests, dict) else limits
    return {**container, "resources": {**resources, "requests": merged}}
