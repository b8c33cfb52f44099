"""The object that a WorkloadProfile belongs to: Kubernetes removes the profile with it."""

import re
from collections.abc import Iterable

from temper_kube.api_server import ApiServer
from temper_kube.list_pages import Json
from temper_plugin_power.controller.pods import KnownPod, Owner
from temper_plugin_power.resources.fields import text_at
from temper_plugin_power.workloads.owners import Workload

_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""Of every object whose kind is in VERSIONS. A reference to an owner may have any text, and the API
server checks no more than that there is one."""
VERSIONS = {
    "CronJob": "batch/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "Pod": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}


def owner_of(workload: Workload, pods: Iterable[KnownPod], server: ApiServer) -> Owner | None:
    """Return the owner of a workload's profile. None if it does not exist.

    It is named by the *pods*, except for a Deployment or a CronJob, which the API server is asked
    for. Raises MachineError if that fails.
    """
    for pod in pods:
        if workload.kind == "Pod":
            return Owner("v1", "Pod", workload.name, pod.measured.pod.uid)
        owner = pod.owner
        if owner is not None and (owner.kind, owner.name) == (workload.kind, workload.name):
            return owner
    return find_owner(workload, server)


def find_owner(workload: Workload, server: ApiServer) -> Owner | None:
    """Return the object of a workload as the API server has it. Raises MachineError."""
    if not may_exist(workload.name):
        return None
    found = server.find(path_of(workload))
    if found is None:
        return None
    uid = text_at(found, "metadata.uid")
    return Owner(VERSIONS[workload.kind], workload.kind, workload.name, uid)


def may_exist(name: str) -> bool:
    """Return whether an object may have that *name*. Any other could lead to another path."""
    return bool(_NAME.fullmatch(name))


def path_of(workload: Workload) -> str:
    """Return the path of a workload's object. Raises KeyError for a kind without pods.

    Only a name that ``may_exist`` is part of a path.
    """
    version = VERSIONS[workload.kind]
    root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    return f"{root}/namespaces/{workload.namespace}/{workload.kind.lower()}s/{workload.name}"


def reference_to(owner: Owner) -> Json:
    """Return the owner reference. It does not block the deletion of the owner."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
