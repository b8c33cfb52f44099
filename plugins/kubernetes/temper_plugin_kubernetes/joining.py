"""Joins the API server's pods with the cgroups of this host, by uid: pure."""

from collections.abc import Collection, Iterable, Mapping

from attrs import evolve

from temper_core import Container, Origin, Pod
from temper_plugin_kubernetes.listing import Listed


def join(
    listed: Listed,
    found: Iterable[Pod],
    vanished: Collection[str] = (),
    deleted: Collection[str] = (),
) -> tuple[Pod, ...]:
    """Return the listed pods, each with its cgroup, and what else was *found* on this host.

    *found* are pods as the cgroup tree alone tells them: a Kubernetes pod among them that is not
    listed is new, or static, and stays as it was found. One that is listed as ended is left out.
    One that is leaving counts for as long as it has a cgroup.
    *vanished* are uids of listed pods that are left out because their cgroups are gone, *deleted*
    those that were listed once: the kubelet takes minutes to remove their cgroups, and what has no
    container left there is no pod.
    """
    local = tuple(found)
    by_uid = {pod.uid: pod for pod in local if pod.origin is Origin.KUBERNETES}
    uids = {pod.uid for pod in listed.pods}
    here = [pod for pod in listed.pods if pod.uid not in vanished]
    here += [pod for pod in listed.leaving if pod.uid in by_uid.keys() - uids]
    named = [_with(pod, by_uid.get(pod.uid)) for pod in here]
    known = uids | {pod.uid for pod in listed.leaving} | listed.ended
    others = [pod for pod in local if pod.origin is not Origin.KUBERNETES or pod.uid not in known]
    return (*named, *(pod for pod in others if pod.containers or pod.uid not in deleted))


def with_cgroups(found: Iterable[Pod]) -> frozenset[str]:
    """Return the uids of the Kubernetes pods among *found*."""
    return frozenset(pod.uid for pod in found if pod.origin is Origin.KUBERNETES)


def _with(pod: Pod, local: Pod | None) -> Pod:
    if local is None:
        return pod
    processes = {each.runtime_id: each.processes for each in local.containers if each.runtime_id}
    containers = tuple(_running(each, processes) for each in pod.containers)
    return evolve(pod, cgroups=local.cgroups, containers=containers)


def _running(container: Container, processes: Mapping[str, tuple[str, ...]]) -> Container:
    found = processes.get(container.runtime_id)
    return evolve(container, processes=found) if found else container
