"""Decide in which directories the name of a pod's or container's cgroup can be trusted.

A container that may make cgroups could name one like a more important pod. So names count only
where the node's own tools make cgroups: outside of all pods and containers, or, for a container's
name, right inside a pod's directory. A container that is a node itself, as in kind, holds a tree
of the kubelet's. Names count there again. Inside a pod no such tree is trusted.
"""

import re
from collections.abc import Iterator
from enum import Enum

from temper_core.records.steering import NAME_PARTS

SESSIONS = "user.slice"
"""Below it, systemd lets users make cgroups of any name."""
_KUBELETS = re.compile(r"(?:^|-)kubepods(?:\.slice)?$")
"""The name of the directory above all pods, with any prefix of the kubelet's."""
_CONTAINER_ID = re.compile(r"[0-9a-f]{64}")
_POD = re.compile(r"(?:^|-)pod[^-]*\.slice$|^pod")
_POD_BY_UID = re.compile(
    r"(?:^|-)pod(?:[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$"
)


class NamesCount(Enum):
    """The names that count for a cgroup, by the directories above."""

    ALL = "outside of all pods and containers"
    CONTAINERS = "right inside a pod's directory"
    IN_A_CONTAINER = "none, unless a kubelet's tree begins here"
    NONE = "none"

    @property
    def pods(self) -> bool:
        """Whether names of pods count."""
        return self is NamesCount.ALL

    @property
    def containers(self) -> bool:
        """Whether names of containers count."""
        return self in (NamesCount.ALL, NamesCount.CONTAINERS)


def where_names_count(path: str) -> Iterator[tuple[str, NamesCount]]:
    """Yield every directory from the root to *path*, and the names that count for it."""
    parts = path.split("/") if path else []
    count = NamesCount.NONE if parts[:1] == [SESSIONS] else NamesCount.ALL
    is_kubelets = False
    yield "", count
    for depth, name in enumerate(parts):
        yield "/".join(parts[: depth + 1]), count
        is_pod = bool((_POD if is_kubelets else _POD_BY_UID).search(name))
        is_kubelets = is_kubelets or bool(_KUBELETS.search(name))
        count = _below(name, count, is_pod=is_pod, is_kubelets=is_kubelets)


def _below(name: str, count: NamesCount, *, is_pod: bool, is_kubelets: bool) -> NamesCount:
    """Return the names that count right below a directory whose own name has *count*.

    *is_pod* holds if its name is a pod's, *is_kubelets* if it or a parent is the kubelet's tree.
    """
    if count is NamesCount.ALL and is_pod:
        return NamesCount.CONTAINERS
    if count is NamesCount.ALL and any(map(_CONTAINER_ID.fullmatch, NAME_PARTS.split(name))):
        # A container in the kubelet's tree belongs to a pod, wherever its directory is.
        is_in_pod = is_kubelets or "kubepods-" in name
        return NamesCount.NONE if is_in_pod else NamesCount.IN_A_CONTAINER
    if count is NamesCount.IN_A_CONTAINER and is_kubelets:
        return NamesCount.ALL
    return NamesCount.NONE if count is NamesCount.CONTAINERS else count
