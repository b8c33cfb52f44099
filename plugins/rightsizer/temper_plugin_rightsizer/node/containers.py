"""The containers of the node's pods, with their cgroups."""

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from temper_core import Assignment, Container, Origin, Pod, Treatment
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.advice.suggestions import (
    BY_NEW_RULE,
    BY_PRIORITY,
    BY_RULE,
    PodTreatment,
)
from temper_plugin_rightsizer.advice.surroundings import ContainerKind
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.node.cgroup_counters import CgroupFiles

NO_TREATMENT = PodTreatment()
RAISED_BY = {Origin.KUBERNETES: BY_PRIORITY, Origin.WORKLOAD: BY_RULE}


@frozen
class NodeContainer:
    """A container of a pod of this node. ``cgroups`` are paths without a leading slash.

    ``programs`` are those that its first process is in. ``treatment`` is what its pod's threads get
    now. ``freed_millis`` is the part of its CPU request that the overcommit webhook took away.
    """

    key: ContainerKey
    owner: str
    resources: Resources
    cgroups: tuple[str, ...] = field(default=())
    programs: tuple[str, ...] = field(default=())
    kind: ContainerKind = ContainerKind.APP
    treatment: PodTreatment = NO_TREATMENT
    freed_millis: int = 0


def treatment_of(assignment: Assignment) -> PodTreatment:
    """Return what the threads of a pod get. Those of a system pod have no tier."""
    if assignment.is_system:
        return NO_TREATMENT
    profile = assignment.profile.profile if assignment.profile else None
    groups = profile.thread_groups if profile else ()
    return PodTreatment(
        assignment.tier,
        profile.id if profile else "",
        any(group.treatment is Treatment.EXCLUSIVE for group in groups),
        RAISED_BY.get(assignment.pod.origin, BY_NEW_RULE),
    )


def containers_of(
    pod: Pod, files: CgroupFiles, treatment: PodTreatment = NO_TREATMENT
) -> list[NodeContainer]:
    """Return the containers of *pod*. One without a name stands for a pod without containers.

    A container's cgroups are those below the pod's that have its runtime id in their names. A
    pod's only container has the pod's own cgroups, as no other could use anything there.
    """
    whole_pod = tuple(path.strip("/") for path in pod.cgroups)
    is_alone = len(pod.containers) <= 1
    names = {f"{path}/{name}" for path in whole_pod for name in files.directories(path)}
    found = []
    for container in pod.containers or (_whole(pod),):
        own = tuple(sorted(_with_id(names, container.runtime_id)))
        found.append(
            NodeContainer(
                _key(pod, container.name),
                pod.owner,
                _resources(container),
                whole_pod if is_alone else own,
                own or (whole_pod if is_alone else ()),
                ContainerKind.SIDECAR if container.is_sidecar else ContainerKind.APP,
                treatment,
            )
        )
    return found


def names_by_uid(containers: Iterable[NodeContainer]) -> Mapping[str, list[str]]:
    """Return the names of the containers of each pod that may run, by the pod's uid.

    They have a cgroup, or are the only one of a pod that is made of processes. Others do not run:
    a pod may list hundreds whose image is never there.
    """
    by_uid: dict[str, list[NodeContainer]] = {}
    for container in containers:
        by_uid.setdefault(container.key.uid, []).append(container)
    return {
        uid: [own.key.container for own in of_pod if own.cgroups or len(of_pod) == 1]
        for uid, of_pod in by_uid.items()
    }


def _whole(pod: Pod) -> Container:
    return Container("", "", pod.cpu_request_millis, pod.cpu_limit_millis)


def _resources(container: Container) -> Resources:
    return Resources(
        container.cpu_request_millis or None,
        container.cpu_limit_millis,
        container.memory_request_bytes,
        container.memory_limit_bytes,
    )


def _with_id(paths: Iterable[str], runtime_id: str) -> Iterable[str]:
    number = runtime_id.rpartition("://")[2]
    return (path for path in paths if number and number in path)


def _key(pod: Pod, container: str) -> ContainerKey:
    return ContainerKey(pod.uid, pod.namespace, pod.name, container)
