"""Identifies a cgroup by its path alone: a pod, a container, a systemd unit, a workload.

The names are those of the kubelet (systemd and cgroupfs drivers), containerd, CRI-O, Docker and
podman. Kind, k3d and the like put a prefix before the kubelet's names.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from attrs import frozen

from temper_core.records.pods import QosClass
from temper_core.records.tiers import Tier

USER_SLICE = "user.slice"
RUN_SLICE = "temper.slice"
SLICE_SUFFIX = ".slice"
OF_RUNTIMES = ("docker", "libpod_parent")
"""Directories in which a runtime without systemd makes the cgroups of containers."""
LXC_PAYLOAD = "lxc.payload."
"""Before a container of LXC, whose root makes all cgroups below (lxc.container.conf(5))."""
MAKER_DEPTH = 2
"""The components that name the maker of a cgroup without an owner: a user, or the top of a tree."""


class CgroupKind(StrEnum):
    """The kind of a cgroup's owner."""

    POD = "pod"
    CONTAINER = "container"
    UNIT = "unit"
    SESSION = "session"
    RUN = "run"
    OTHER = "other"


@frozen
class CgroupIdentity:
    """The owner of a cgroup.

    ``owner`` is the path of the pod, container, unit or workload, without outer slashes. ``name``
    is the name of the unit, the workload or the container runtime. ``uid`` is a Kubernetes pod's.
    ``runtime_id`` is the id of a container, with or without a pod.
    """

    kind: CgroupKind
    owner: str = ""
    name: str = ""
    uid: str = ""
    runtime_id: str = ""
    qos_class: QosClass | None = None

    @property
    def outer(self) -> str:
        """The unit or container around a container's cgroup, empty without one.

        The holder of that one may have made this one, with any size.
        """
        if self.kind is not CgroupKind.CONTAINER:
            return ""
        parts = self.owner.split("/")
        is_slice = [part.endswith(SLICE_SUFFIX) for part in parts]
        above = 1 if parts[0] in OF_RUNTIMES else is_slice.index(False)
        return "/".join(parts[: above + 1]) if above + 1 < len(parts) else ""


_ID = r"(?P<id>[0-9a-f]{64})"
_RUNTIMES = r"cri-containerd|crio|docker|libpod(?:-payload)?|nerdctl|podman"
# kubelet-kubepods-burstable-pod1234_abcd.slice. Systemd reserves the dash for nesting.
_POD_SLICE = re.compile(
    r"(?:.*-)?kubepods(?:-(?P<qos>burstable|besteffort))?-pod(?P<uid>[0-9A-Za-z_]{1,64})\.slice"
)
_POD_DIRECTORY = re.compile(r"pod(?P<uid>[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_CONTAINER = re.compile(rf"(?:(?P<runtime>{_RUNTIMES})-)?{_ID}(?:\.scope)?")
_UNIT = re.compile(r".+\.(?:service|scope)")
_RUN = re.compile(r"run-(?P<name>[^@/]+)@(?P<tier>[a-z]+)(?:@(?P<profile>[^@/]+))?")
_TIERS = frozenset(tier.value for tier in Tier)
_QOS_CLASSES = {"burstable": QosClass.BURSTABLE, "besteffort": QosClass.BEST_EFFORT}


LONGEST_REMEMBERED = 512
"""Characters of a path whose owner is remembered. A user may make thousands of paths of 4 KB."""
MOST_REMEMBERED = 8_192
_owners: dict[str, CgroupIdentity] = {}


def identify(path: str) -> CgroupIdentity:
    """Return the owner of the cgroup at *path*, with or without outer slashes.

    The outermost pod counts, else the innermost container, else the outermost unit.
    """
    identity = _owners.get(path)
    if identity is None:
        identity = _identify(path)
        if len(path) <= LONGEST_REMEMBERED:
            if len(_owners) >= MOST_REMEMBERED:
                _owners.clear()
            _owners[path] = identity
    return identity


def forget(paths: Iterable[str]) -> None:
    """Remember the owners of cgroups that were removed no longer. The path of a pod never returns.

    Otherwise the memory of a node with short pods would grow with all that it ever had.
    """
    for path in paths:
        _owners.pop(path, None)


def _identify(path: str) -> CgroupIdentity:
    parts = [part for part in path.split("/") if part]
    if parts and parts[0] == USER_SLICE:
        # Users choose the names of their cgroups freely, so that a name proves nothing there.
        return CgroupIdentity(CgroupKind.SESSION, USER_SLICE, name=USER_SLICE)
    return (
        _pod(parts)
        or _run(parts)
        or _container(parts)
        or _unit(parts)
        or CgroupIdentity(CgroupKind.OTHER)
    )


def maker_of(path: str) -> str:
    """Return the outermost cgroup whose holder may have made *path*, without outer slashes.

    It is that of the pod, container, unit, workload or user. It serves to bound what one of them
    makes, and proves nothing of its name.
    """
    top = path.strip("/").split("/")[0]
    if top.startswith(LXC_PAYLOAD):
        return top
    identity = identify(path)
    if identity.kind in (CgroupKind.SESSION, CgroupKind.OTHER):
        return "/".join(path.strip("/").split("/")[:MAKER_DEPTH])
    return identity.outer or identity.owner


def is_named_by_system(path: str) -> bool:
    """Whether the host's systemd has named the cgroup at *path*: only its slices are above it.

    Users, containers and services with ``Delegate=`` choose the names below their own cgroups.
    """
    return all(part.endswith(SLICE_SUFFIX) for part in path.strip("/").split("/")[:-1])


def parse_run_name(directory_name: str) -> tuple[str, Tier, str] | None:
    """Return (name, tier, profile) of a cgroup of ``temper run``, or ``None`` for others."""
    match = _RUN.fullmatch(directory_name)
    if match is None or match["tier"] not in _TIERS:
        return None
    return match["name"], Tier(match["tier"]), match["profile"] or ""


def _pod(parts: list[str]) -> CgroupIdentity | None:
    for depth, part in enumerate(parts):
        match = _POD_SLICE.fullmatch(part)
        qos = match and match["qos"]
        if match is None and (match := _POD_DIRECTORY.fullmatch(part)):
            above = parts[max(0, depth - 2) : depth]
            if not any(name.endswith("kubepods") for name in above):
                continue
            qos = above[-1]
        if match is not None:
            return CgroupIdentity(
                CgroupKind.POD,
                owner="/".join(parts[: depth + 1]),
                uid=match["uid"].replace("_", "-"),
                runtime_id=_container_of_pod(parts[depth + 1 : depth + 2]),
                qos_class=_QOS_CLASSES.get(qos or "", QosClass.GUARANTEED),
            )
    return None


def _container_of_pod(below: list[str]) -> str:
    # crio-conmon-<id>.scope, the monitor beside the container, does not match.
    match = _CONTAINER.fullmatch(below[0]) if below else None
    return match["id"] if match else ""


def _run(parts: list[str]) -> CgroupIdentity | None:
    if len(parts) < 2 or parts[0] != RUN_SLICE:  # noqa: PLR2004 - the slice and one below it
        return None
    named = parse_run_name(parts[1])
    return named and CgroupIdentity(CgroupKind.RUN, "/".join(parts[:2]), name=named[0])


def _container(parts: list[str]) -> CgroupIdentity | None:
    for depth in reversed(range(len(parts))):
        match = _CONTAINER.fullmatch(parts[depth])
        above = parts[depth - 1] if depth else ""
        if match is None or not (match["runtime"] or above in ("docker", "libpod_parent")):
            continue
        return CgroupIdentity(
            CgroupKind.CONTAINER,
            owner="/".join(parts[: depth + 1]),
            name=(match["runtime"] or above).removesuffix("-payload").removesuffix("_parent"),
            runtime_id=match["id"],
        )
    return None


def _unit(parts: list[str]) -> CgroupIdentity | None:
    for depth, part in enumerate(parts):
        if _UNIT.fullmatch(part):
            return CgroupIdentity(CgroupKind.UNIT, "/".join(parts[: depth + 1]), name=part)
        if not part.endswith(SLICE_SUFFIX):
            # Below this directory systemd does not choose the names.
            return None
    return None
