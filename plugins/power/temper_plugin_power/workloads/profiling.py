"""The profiles of all workloads of some pods, and the Kubernetes objects that hold them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import frozen

from temper_plugin_power.classifier.classifying import classify
from temper_plugin_power.classifier.hints import read_hints
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.resources.definitions import GROUP, VERSION
from temper_plugin_power.workloads.deriving import derive
from temper_plugin_power.workloads.energy import Dialect, energy_of, nodes_of_one_ratio
from temper_plugin_power.workloads.owners import Workload, workload_of
from temper_plugin_power.workloads.pods import MeasuredPod

KIND = "WorkloadProfile"
SKIPPED_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease"})


@frozen
class WorkloadProfile:
    """The profile of a workload, with what it follows from."""

    workload: Workload
    node: str
    """The node that all of its pods share, else empty."""
    profile: PowerProfile
    evidence: Mapping[str, Any]

    def as_object(self, at: datetime) -> Mapping[str, Any]:
        """Return the Kubernetes object, last updated *at*, which is a time in UTC."""
        workload = self.workload
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "metadata": {
                "name": workload.object_name,
                "namespace": workload.namespace,
                "labels": {
                    f"{GROUP}/workload-kind": workload.kind,
                    f"{GROUP}/workload-name": workload.label_value,
                },
            },
            "spec": {
                "nodeName": self.node,
                "workloadRef": {
                    "kind": workload.kind,
                    "namespace": workload.namespace,
                    "name": workload.name,
                },
            },
            "status": {**self.profile.status(at), "evidence": self.evidence},
        }


def profile_workloads(
    pods: Sequence[MeasuredPod],
    *,
    dialect: Dialect,
    window_s: int,
    derives_class: bool = False,
) -> list[WorkloadProfile]:
    """Return the profile of each workload of *pods*, by namespace, kind and name.

    Kubernetes' own namespaces are left out.
    """
    shared_nodes = nodes_of_one_ratio(pods)
    profiles = []
    for workload, own in sorted(_by_workload(pods).items()):
        energy = energy_of(own, dialect, shared_nodes)
        derived = derive(own, energy, dialect, window_s)
        newest = max(own, key=lambda pod: (pod.created_at, pod.pod.name)).pod
        hints = read_hints(newest.annotations, newest.labels)
        profile = classify(hints, derived.signals, derives_class=derives_class)
        profiles.append(WorkloadProfile(workload, _shared_node(own), profile, derived.evidence))
    return profiles


def _by_workload(pods: Iterable[MeasuredPod]) -> Mapping[Workload, list[MeasuredPod]]:
    workloads: dict[Workload, list[MeasuredPod]] = defaultdict(list)
    for pod in pods:
        if pod.pod.namespace not in SKIPPED_NAMESPACES:
            workloads[workload_of(pod.pod)].append(pod)
    return workloads


def _shared_node(pods: Iterable[MeasuredPod]) -> str:
    nodes = {pod.node for pod in pods if pod.node}
    return nodes.pop() if len(nodes) == 1 else ""
