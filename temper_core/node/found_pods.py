"""Makes pods from cgroups alone."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, frozen

from temper_core.node.cgroup_names import (
    OF_RUNTIMES,
    CgroupIdentity,
    CgroupKind,
    identify,
    is_named_by_system,
    parse_run_name,
)
from temper_core.node.pod_size import CpuSize
from temper_core.node.workloads import qos_class_of
from temper_core.records.pods import PROFILE_ANNOTATIONS, Container, Origin, Pod, QosClass

RUN_NAMESPACE = "run"
# The kubelet's names of the cgroup above all its pods, by cgroup driver.
KUBEPODS = ("kubepods", "kubepods.slice")
MOST_NESTED = 64
"""Containers inside one unit or container that are pods. Others belong to the outer one."""
_UNITS = (CgroupKind.UNIT, CgroupKind.SESSION)


@frozen
class CgroupOwner:
    """A pod, container, unit or workload that has cgroups.

    ``path`` has no outer slashes. ``containers`` are (path, runtime id) of a pod's containers.
    ``is_unified`` is true in the cgroup v2 tree, the only one that the engine sees.
    """

    identity: CgroupIdentity
    path: str
    is_unified: bool
    containers: tuple[tuple[str, str], ...] = ()

    @property
    def main_paths(self) -> tuple[str, ...]:
        """The cgroups whose programs are the main processes of the owner."""
        if self.identity.kind is CgroupKind.POD:
            return tuple(path for path, _ in self.containers)
        return () if self.identity.kind is CgroupKind.SESSION else (self.path,)


def is_kubepods(path: str) -> bool:
    """Whether the cgroup at *path* is above all pods of a kubelet. A user's own is not."""
    return path.endswith(KUBEPODS) and identify(path).kind is not CgroupKind.SESSION


def find_owners(hierarchies: Iterable[Sequence[str]]) -> tuple[CgroupOwner, ...]:
    """Return the owners of the cgroups of *hierarchies*, the v2 hierarchy first.

    An owner in several hierarchies counts once, as in the first. Units count only if the host has
    no kubelet's top cgroup. Of several cgroups with the name of one pod the kubelet's own counts,
    and of several with the id of one container the runtime's: a container may make others below its
    own.
    """
    owners_by_key: dict[str, CgroupOwner] = {}
    has_kubernetes = False
    for number, paths in enumerate(hierarchies):
        has_kubernetes |= any(map(is_kubepods, paths))
        owners_by_key = _owners_in(paths, is_unified=number == 0) | owners_by_key
    owners = tuple(owners_by_key[key] for key in sorted(owners_by_key))
    return without_units(owners) if has_kubernetes else owners


def without_units(owners: Iterable[CgroupOwner]) -> tuple[CgroupOwner, ...]:
    """Leave out systemd's units and sessions."""
    return tuple(owner for owner in owners if owner.identity.kind not in _UNITS)


def _owners_in(paths: Sequence[str], *, is_unified: bool) -> dict[str, CgroupOwner]:
    containers: dict[str, dict[str, str]] = {}
    owners: dict[str, CgroupOwner] = {}
    nested: Counter[str] = Counter()
    for identity in map(identify, paths):
        key = _key(identity)
        before = owners.get(key)
        is_ours = before is None or _rank(identity) < _rank(before.identity)
        if identity.kind is not CgroupKind.OTHER and is_ours:
            nested[identity.outer] += 1
            if not identity.outer or nested[identity.outer] <= MOST_NESTED:
                owners[key] = CgroupOwner(identity, identity.owner, is_unified)
    for path in paths:
        identity = identify(path)
        key = _key(identity)
        is_of_owner = key in owners and owners[key].path == identity.owner
        if is_of_owner and identity.kind is CgroupKind.POD and identity.runtime_id:
            # The first path of an id is the container's own. It may make cgroups below.
            containers.setdefault(key, {}).setdefault(identity.runtime_id, path)
    for key, inside in containers.items():
        ordered = sorted((path, runtime_id) for runtime_id, path in inside.items())
        owners[key] = evolve(owners[key], containers=tuple(ordered))
    return owners


def _key(identity: CgroupIdentity) -> str:
    return identity.uid or identity.runtime_id or identity.owner


def _rank(identity: CgroupIdentity) -> tuple[bool, int]:
    """Return the rank of a cgroup among those of one name: the lowest is the runtime's own.

    A kubelet of the host has the top cgroup ``kubepods`` or ``kubepods.slice``, which only root
    makes. A runtime makes its cgroups in slices, or in a top cgroup of its own. Below another top
    the one that is nearest to the root was made by the owner of most.
    """
    top, *below = identity.owner.split("/")
    if identity.kind is CgroupKind.POD:
        is_the_hosts = top in KUBEPODS
    else:
        is_the_hosts = top in OF_RUNTIMES or is_named_by_system(identity.owner)
    return not is_the_hosts, len(below)


def pods_of(
    owners: Sequence[CgroupOwner],
    sizes: Mapping[str, CpuSize],
    programs: Mapping[str, tuple[str, ...]],
) -> list[Pod]:
    """Make the pods of *owners*. *sizes* and the names of *programs* are by cgroup path.

    Containers inside a unit or another container share the size of the outer one.
    """
    sharing = Counter(owner.identity.outer for owner in owners)

    def size_of(owner: CgroupOwner) -> CpuSize:
        outer = owner.identity.outer
        if not outer:
            return sizes[owner.path]
        return evolve(sizes[outer], request=sizes[outer].request // sharing[outer])

    pods = [_pod(owner, size_of(owner), programs) for owner in owners]
    times = Counter(pod.key for pod in pods)
    return [evolve(pod, name=_whole_name(pod)) if times[pod.key] > 1 else pod for pod in pods]


def _whole_name(pod: Pod) -> str:
    """Return a name that no other pod has.

    Two runs of one command differ in tier or profile, which are in the directory name. Two pods may
    have uids that begin alike.
    """
    return pod.uid.partition(":")[2] or pod.uid


def _pod(owner: CgroupOwner, size: CpuSize, programs: Mapping[str, tuple[str, ...]]) -> Pod:
    make = {
        CgroupKind.POD: _kubernetes_pod,
        CgroupKind.CONTAINER: _container_pod,
        CgroupKind.RUN: _run_pod,
    }.get(owner.identity.kind, _unit_pod)
    pod = make(owner, size)
    processes = [programs.get(path, ()) for path in owner.main_paths]
    return evolve(
        pod,
        containers=tuple(
            evolve(container, processes=names)
            for container, names in zip(pod.containers, processes, strict=True)
        ),
        cpu_limit_millis=size.limit,
        cgroups=(f"{owner.path}/",) if owner.is_unified else (),
    )


def _kubernetes_pod(owner: CgroupOwner, size: CpuSize) -> Pod:
    qos_class = owner.identity.qos_class or QosClass.BEST_EFFORT
    is_guaranteed = qos_class is QosClass.GUARANTEED and size.limit is not None
    return Pod(
        uid=owner.identity.uid,
        namespace="",
        name=f"pod-{owner.identity.uid[:8]}",
        qos_class=qos_class,
        containers=tuple(
            Container("", runtime_id=runtime_id) for _, runtime_id in owner.containers
        ),
        # A quota is exact. A weight is rounded.
        cpu_request_millis=size.limit or 0 if is_guaranteed else size.request,
    )


def _container_pod(owner: CgroupOwner, size: CpuSize) -> Pod:
    runtime_id = owner.identity.runtime_id
    name = f"{owner.identity.name}-{runtime_id[:12]}"
    return Pod(
        uid=runtime_id,
        namespace="",
        name=name,
        qos_class=qos_class_of(size),
        containers=(Container(name, "", size.request, size.limit, runtime_id),),
        cpu_request_millis=size.request,
        origin=Origin.CONTAINER,
    )


def _run_pod(owner: CgroupOwner, size: CpuSize) -> Pod:
    directory = owner.path.rpartition("/")[2]
    # Every cgroup identified as a run has such a name.
    name, tier, profile = parse_run_name(directory) or (directory, None, "")
    return Pod(
        uid=f"run:{directory.removeprefix('run-')}",
        namespace=RUN_NAMESPACE,
        name=name,
        qos_class=qos_class_of(size),
        containers=(Container(name, "", size.request, size.limit),),
        cpu_request_millis=size.request,
        annotations={PROFILE_ANNOTATIONS[0]: profile} if profile else {},
        origin=Origin.WORKLOAD,
        tier=tier,
        tier_rule=f"temper run --tier {tier}",
    )


def _unit_pod(owner: CgroupOwner, size: CpuSize) -> Pod:
    name = owner.identity.name
    is_session = owner.identity.kind is CgroupKind.SESSION
    containers = () if is_session else (Container(name, "", size.request, size.limit),)
    return Pod(
        uid=f"unit:{name}",
        namespace="",
        name=name,
        qos_class=qos_class_of(size),
        containers=containers,
        cpu_request_millis=size.request,
        origin=Origin.UNIT,
    )
