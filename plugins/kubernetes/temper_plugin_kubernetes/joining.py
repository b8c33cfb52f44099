"""Joins the API server's pods with the cgroups of this host by uid."""

from collections.abc import Collection, Iterable, Mapping

from attrs import evolve

from temper_core import Container, Origin, Pod
from temper_plugin_kubernetes.listing import Listed


def join(
    listed: Listed,
    pods: Iterable[Pod] | None,
    vanished: Collection[str] = (),
    deleted: Collection[str] = (),
) -> tuple[Pod, ...]:
    """Return the listed pods, each with its cgroup, and the unlisted ones of *pods*.

    *pods* are pods read from the cgroup tree alone. An unlisted Kubernetes pod among them is new or
    static, and is kept. A pod that is listed as ended is left out. A leaving pod counts for as long
    as it has a cgroup. A waiting pod counts from its cgroup on: any author of a pod can name a
    node, and the kubelet makes a cgroup for those that it has accepted. *pods* is None if no cgroup
    can be read. Waiting pods count then.
    *vanished* are uids of listed pods to leave out because their cgroups are gone. *deleted* are
    uids of formerly listed pods. The kubelet takes minutes to remove their cgroups, so these pods
    are left out once they have no container.
    """
    local = tuple(pods or ())
    by_uid = {pod.uid: pod for pod in local if pod.origin is Origin.KUBERNETES}
    uids = {pod.uid for pod in (*listed.pods, *listed.waiting)}
    here = [pod for pod in listed.pods if pod.uid not in vanished]
    unlisted = by_uid.keys() - uids
    here += [pod for pod in listed.leaving if pod.uid in unlisted]
    here += [pod for pod in listed.waiting if pods is None or pod.uid in by_uid]
    placed_pods = [_with(pod, by_uid.get(pod.uid)) for pod in here]
    known = uids | {pod.uid for pod in listed.leaving} | listed.ended
    others = [pod for pod in local if pod.origin is not Origin.KUBERNETES or pod.uid not in known]
    return (*placed_pods, *(pod for pod in others if pod.containers or pod.uid not in deleted))


def with_cgroups(pods: Iterable[Pod]) -> frozenset[str]:
    """Return the uids of the Kubernetes pods among *pods*."""
    return frozenset(pod.uid for pod in pods if pod.origin is Origin.KUBERNETES)


def _with(pod: Pod, local: Pod | None) -> Pod:
    if local is None:
        return pod
    processes = {
        container.runtime_id: container.processes
        for container in local.containers
        if container.runtime_id
    }
    containers = tuple(_running(container, processes) for container in pod.containers)
    return evolve(pod, cgroups=local.cgroups, containers=containers)


def _running(container: Container, processes: Mapping[str, tuple[str, ...]]) -> Container:
    present = processes.get(container.runtime_id)
    return evolve(container, processes=present) if present else container
