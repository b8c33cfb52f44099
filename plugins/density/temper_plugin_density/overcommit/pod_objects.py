"""A Pod object as the API server sends it: its CPU requests, its QoS class, its size."""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from temper_core import InputError, Pod, cpu_millis, read_pod_object
from temper_plugin_density.pod_bounds import KINDS_OF_CONTAINERS, check_containers

Place = tuple[str, int]
"""The position of a container in the spec: the list's key, and the index in that list."""


@frozen
class CpuRequest:
    """The CPU request of one container: its text, and in millicores."""

    place: Place
    container: str
    text: str
    millis: int
    limit_millis: int | None


@frozen
class PodObject:
    """The parts of a Pod object that decisions use. ``pod`` is the core's record of it."""

    pod: Pod
    spec: Mapping[str, Any]
    has_annotations: bool
    requests: tuple[CpuRequest, ...]

    def millis_with(self, requests: Mapping[Place, int]) -> int:
        """Return the millicores that the scheduler would count for the pod with *requests*."""
        return _record(_with_requests(self.spec, requests), {}).cpu_request_millis


def read(document: object) -> PodObject:
    """Read a Pod object. Raise InputError for anything else.

    Only metadata and spec are read: the creator of a pod may write anything into its status.
    """
    pod = _table(document, "pod")
    metadata, spec = _table(pod.get("metadata"), "metadata"), _table(pod.get("spec"), "spec")
    check_containers(spec)
    annotations = metadata.get("annotations")
    record = _record(spec, annotations)
    return PodObject(record, spec, annotations is not None, tuple(_requests(spec)))


def _record(spec: Mapping[str, Any], annotations: object) -> Pod:
    # A new pod with a generateName has no name yet.
    metadata = {"name": "pod", "annotations": annotations}
    pod = read_pod_object({"kind": "Pod", "metadata": metadata, "spec": spec}, source="pod")
    if pod is None:
        raise InputError("pod: has terminated")
    return pod


def _table(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{name}: must be an object")
    return value


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    for kind in KINDS_OF_CONTAINERS:
        for index, container in enumerate(spec.get(kind) or ()):
            yield (kind, index), container


def _requests(spec: Mapping[str, Any]) -> Iterator[CpuRequest]:
    for place, container in _containers(spec):
        resources = container.get("resources") or {}
        request = (resources.get("requests") or {}).get("cpu")
        if request is None:
            continue
        limit = (resources.get("limits") or {}).get("cpu")
        yield CpuRequest(
            place,
            str(container.get("name", "")),
            str(request),
            cpu_millis(request),
            None if limit is None else cpu_millis(limit),
        )


def _with_requests(spec: Mapping[str, Any], requests: Mapping[Place, int]) -> Mapping[str, Any]:
    changed: dict[str, Any] = {**spec, **{kind: [] for kind in KINDS_OF_CONTAINERS}}
    for place, container in _containers(spec):
        changed[place[0]].append(_with_request(container, requests.get(place)))
    return changed


def _with_request(container: Mapping[str, Any], millis: int | None) -> Mapping[str, Any]:
    if millis is None:
        return container
    resources = container["resources"]
    requests = {**resources["requests"], "cpu": f"{millis}m"}
    return {**container, "resources": {**resources, "requests": requests}}
