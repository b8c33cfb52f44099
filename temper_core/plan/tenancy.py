"""Whose cgroup a directory is: in which ones the name of a pod or container can be believed.

Who may make cgroups, as a container may in its own, could name one like a better pod. So names
count only where the node's own tools make cgroups: outside of all pods and containers, or, for a
container's, right inside a pod's directory. A container that is a node itself, as kind's are, has
a tree of the kubelet's in it, whose names count again. In a pod no such tree is believed.
"""

import re
from collections.abc import Iterator
from enum import Enum

from temper_core.records.steering import NAME_PARTS

SESSIONS = "user.slice"
"""Below it, systemd lets users make cgroups of any name."""
_KUBELETS = re.compile(r"(?:^|-)kubepods(?:\.slice)?$")
"""The name of the directory above all pods, behind whatever the kubelet puts in front."""
_CONTAINER_ID = re.compile(r"[0-9a-f]{64}")
_POD = re.compile(r"(?:^|-)pod[^-]*\.slice$|^pod")
_POD_BY_UID = re.compile(
    r"(?:^|-)pod(?:[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$"
)


class NamesCount(Enum):
    """Which names count for a cgroup, by the directories above."""

    ALL = "outside of all pods and containers"
    CONTAINERS = "right inside a pod's directory"
    IN_A_CONTAINER = "none, unless a kubelet's tree begins here"
    NONE = "none"

    @property
    def pods(self) -> bool:
        """Whether names of pods do."""
        return self is NamesCount.ALL

    @property
    def containers(self) -> bool:
        """Whether names of containers do."""
        return self in (NamesCount.ALL, NamesCount.CONTAINERS)


def where_names_count(path: str) -> Iterator[tuple[str, NamesCount]]:
    """Yield every directory from the root to *path*, and which names count for it."""
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
    """Return which names count right below a directory for whose own name *count* holds.

    It ``is_pod`` by its name, or ``is_kubelets`` if it or one above is a tree of the kubelet's.
    """
    if count is NamesCount.ALL and is_pod:
        return NamesCount.CONTAINERS
    if count is NamesCount.ALL and any(map(_CONTAINER_ID.fullmatch, NAME_PARTS.split(name))):
        # A container in the kubelet's tree is a pod's, wherever its directory was put.
        is_in_pod = is_kubelets or "kubepods-" in name
        return NamesCount.NONE if is_in_pod else NamesCount.IN_A_CONTAINER
    if count is NamesCount.IN_A_CONTAINER and is_kubelets:
        return NamesCount.ALL
    return NamesCount.NONE if count is NamesCount.CONTAINERS else count
