"""Converts one Kubernetes Pod object to the record that placement needs.

A user with the right to create pods chooses their content, up to etcd's 1.5 MiB. The API server
bounds names and annotations. The bounds here are of what it takes in any size.
"""

import re
from collections.abc import Mapping
from itertools import islice

from attrs import evolve

from temper_core.node.pod_fields import JsonObject
from temper_core.node.pod_size import (
    SizedContainer,
    computed_qos_class,
    container_size,
    memory_of,
    pod_size,
)
from temper_core.quantities import cpu_millis
from temper_core.records.pods import Container, Pod, QosClass

FINISHED_PHASES = ("Succeeded", "Failed")
MIRROR = "kubernetes.io/config.mirror"
STATIC_HASH = "kubernetes.io/config.hash"

MOST_CONTAINERS = 256
"""Of each kind that count. A pod with more keeps its tier, and the others are left out."""
MOST_LABELS = 128
"""The first labels by name, in the API server's order. The others are left out."""
LONGEST_IMAGE = 512
"""A longer reference is none: a name has 255 characters, a tag 128, a digest 71 (grammar of
github.com/distribution/reference)."""
LONGEST_OWNER = 320

# Wider than Kubernetes' own rules, narrow enough to stand in a path and in a pattern.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")

# A kubelet's uid is a UUID, or the MD5 of a manifest (pkg/kubelet/config/common.go, applyDefaults).
_STATIC_UID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}")

# Every runtime's id is 32 random bytes in hexadecimal, and so is the name of the cgroup.
_CONTAINER_ID = re.compile(r"[a-z0-9.+-]+://([0-9a-f]{64})")


def has_ended(pod: JsonObject) -> bool:
    """Whether the pod is finished or terminating, and needs no CPUs any more."""
    if pod.table("metadata").values.get("deletionTimestamp") is not None:
        return True
    return pod.table("status").text("phase") in FINISHED_PHASES


def is_elsewhere(pod: JsonObject, node: str) -> bool:
    """Whether the pod is on another node than *node*, or is still waiting for one."""
    bound_to = pod.table("spec").text("nodeName")
    if not bound_to:
        # A manifest names no node either, but it has no status yet.
        return pod.table("status").text("phase") == "Pending"
    return bound_to != node


def read_pod(pod: JsonObject) -> Pod:
    """Read a Pod object. Every misfit is added to its ``problems``."""
    metadata, spec, status = pod.table("metadata"), pod.table("spec"), pod.table("status")
    runtime_ids = _runtime_ids(status)
    annotations = metadata.strings("annotations")
    allocated = _allocated(status)
    containers, init_containers = (
        [_sized(container, allocated) for container in spec.tables(key, MOST_CONTAINERS)]
        for key in ("containers", "initContainers")
    )
    if not containers:
        spec.complain("containers", "must name at least one container")
    size = pod_size(
        spec,
        containers,
        init_containers,
        granted=_granted(status),
        initialised=_is_initialised(status),
    )
    sidecars = [container for container in init_containers if container.is_sidecar]
    name = _name(metadata, "name") or "unnamed"
    namespace = _name(metadata, "namespace", missing="default")
    return Pod(
        uid=_cgroup_uid(metadata, annotations) or f"{namespace}/{name}",
        namespace=namespace,
        name=name,
        priority=spec.whole_number("priority"),
        priority_class=spec.text("priorityClassName"),
        qos_class=_qos_class(status, spec, [*containers, *init_containers]),
        containers=(
            *(_container(container, runtime_ids) for container in containers),
            *(evolve(_container(each, runtime_ids), is_sidecar=True) for each in sidecars),
        ),
        cpu_request_millis=size.request,
        cpu_limit_millis=size.limit,
        annotations=annotations,
        labels=dict(islice(metadata.strings("labels").items(), MOST_LABELS)),
        owner=_owner(metadata),
    )


def _name(metadata: JsonObject, key: str, missing: str | None = None) -> str:
    problems_before = len(metadata.problems)
    value = metadata.text(key)
    if (not value and missing is not None) or len(metadata.problems) > problems_before:
        return missing or ""
    return _checked(metadata, key, value)


def _checked(table: JsonObject, key: str, value: str) -> str:
    if not _NAME.fullmatch(value):
        table.complain(key, "must be a name of letters, digits and '.', '_', ':', '-'")
    return value


def _cgroup_uid(metadata: JsonObject, annotations: Mapping[str, str]) -> str:
    """Return the uid in the name of the pod's cgroup. A manifest may have none.

    The API server's mirror of a static pod has another uid. The kubelet uses the hash. systemd's
    names of cgroups have ``_`` for ``-``, so that the two spellings are one claim.
    """
    if MIRROR in annotations:
        key = STATIC_HASH if STATIC_HASH in annotations else MIRROR
        claimed = str(annotations[key])
        if not _STATIC_UID.fullmatch(claimed):
            # Part of a uid would be a part of the names of other pods' cgroups, too.
            metadata.table("annotations").complain(
                key, "must be the uid that a kubelet gives a pod"
            )
        return claimed.replace("_", "-")
    return _name(metadata, "uid", missing="")


def _sized(container: JsonObject, allocated: Mapping[str, int]) -> SizedContainer:
    size = container_size(container.table("resources"))
    # A resize in place changes the spec at once. A value that the kubelet has not granted does not
    # count.
    size = evolve(size, request=allocated.get(container.text("name"), size.request))
    # The restartPolicy of an ordinary container has no meaning here.
    return SizedContainer(container, size, container.text("restartPolicy") == "Always")


def _container(container: SizedContainer, runtime_ids: Mapping[str, str]) -> Container:
    name = container.spec.text("name")
    image = container.spec.text("image")
    request, limit = memory_of(container.spec.table("resources"))
    return Container(
        name=name,
        image=image if len(image) <= LONGEST_IMAGE and image.isprintable() else "",
        cpu_request_millis=container.size.request,
        cpu_limit_millis=container.size.limit,
        runtime_id=runtime_ids.get(name, ""),
        memory_request_bytes=request,
        memory_limit_bytes=limit,
    )


def _allocated(status: JsonObject) -> Mapping[str, int]:
    """Return the CPU that the kubelet has granted to each container, in millicores by name."""
    granted = {
        entry.text("name"): _granted(entry)
        for key in ("initContainerStatuses", "containerStatuses")
        for entry in status.tables(key)
    }
    return {name: millis for name, millis in granted.items() if millis is not None}


def _granted(status: JsonObject) -> int | None:
    """Return the CPU granted to a container or a pod, in millicores. None if no kubelet reports it.

    A grant without CPU is one of none: a container that requested no CPU may be resized to some.
    Without any request only ``resources`` is there, which is the same once the grant is in force.
    """
    if status.values.get("allocatedResources") is not None:
        return status.table("allocatedResources").quantity("cpu", cpu_millis) or 0
    if status.values.get("resources") is not None:
        return status.table("resources").table("requests").quantity("cpu", cpu_millis) or 0
    return None


def _runtime_ids(status: JsonObject) -> Mapping[str, str]:
    """Return the runtime id of each container by name, empty if it is unknown."""
    return {
        entry.text("name"): _runtime_id(entry.text("containerID"))
        for key in ("initContainerStatuses", "containerStatuses")
        for entry in status.tables(key)
    }


def _runtime_id(container_id: str) -> str:
    """Return the part after ``containerd://``, empty if it is no id.

    It becomes a pattern of the engine, and a shorter text would match other pods' containers.
    """
    match = _CONTAINER_ID.fullmatch(container_id)
    return match[1] if match else ""


def _is_initialised(status: JsonObject) -> bool:
    return any(
        condition.values.get("type") == "Initialized" and condition.text("status") == "True"
        for condition in status.tables("conditions")
    )


def _qos_class(status: JsonObject, spec: JsonObject, containers: list[SizedContainer]) -> QosClass:
    name = status.text("qosClass")
    if not name:
        return computed_qos_class(spec, [container.spec for container in containers])
    try:
        return QosClass(name)
    except ValueError:
        status.complain("qosClass", f"must be one of {', '.join(QosClass)}, not {name[:40]!r}")
        return QosClass.BEST_EFFORT


def _owner(metadata: JsonObject) -> str:
    for owner in metadata.tables("ownerReferences"):
        if owner.is_true("controller"):
            return f"{owner.text('kind')}/{owner.text('name')}"[:LONGEST_OWNER]
    return ""
