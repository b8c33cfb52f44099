"""The profiles of all workloads of some pods, and the Kubernetes objects that hold them."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import frozen

from temper_plugin_power.classifier.classifying import classify
from temper_plugin_power.classifier.hints import Hints, read_hints
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.classifier.signals import Signals
from temper_plugin_power.classifier.traits import ThreadTraits
from temper_plugin_power.defaults import ALIASES, GPU_PROXY_WATTS, SKIPPED_NAMESPACES
from temper_plugin_power.resources.definitions import GROUP, VERSION
from temper_plugin_power.workloads.deriving import Derived, derive
from temper_plugin_power.workloads.energy import Dialect, energy_of, nodes_of_one_ratio
from temper_plugin_power.workloads.owners import Workload, workload_of
from temper_plugin_power.workloads.pods import MeasuredPod
from temper_plugin_power.workloads.thread_profiles import ThreadProfiles

KIND = "WorkloadProfile"


@frozen
class WorkloadProfile:
    """The profile of a workload, with what it follows from."""

    workload: Workload
    node: str
    """The node that all of its pods share, else empty."""
    profile: PowerProfile
    evidence: Mapping[str, Any]
    signals: Signals | None = None
    """The input of the profile besides hints. None without metrics."""

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


@frozen
class ProfilingChoices:
    """The input of profiles besides pods and metrics."""

    derives_class: bool = False
    """Whether a workload without a class hint may be of class performance."""
    aliases: tuple[str, ...] = ALIASES
    """More prefixes of annotations."""
    skipped: Container[str] = SKIPPED_NAMESPACES
    """Namespaces without profiles."""
    gpu_proxy_watts: float = GPU_PROXY_WATTS
    """The power that stands for a GPU in full use, where only its energy is known."""
    thread_profiles: ThreadProfiles = ThreadProfiles()
    """Thread profiles, whose traits are hints."""


USUAL = ProfilingChoices()


def profile_workloads(
    pods: Sequence[MeasuredPod],
    *,
    dialect: Dialect,
    window_s: int,
    choices: ProfilingChoices = USUAL,
) -> list[WorkloadProfile]:
    """Return the profile of each workload of *pods*, by namespace, kind and name."""
    shared_nodes = nodes_of_one_ratio(pods)
    profiles = []
    for workload, own in sorted(_by_workload(pods, choices.skipped).items()):
        energy = energy_of(own, dialect, shared_nodes)
        derived = derive(own, energy, dialect, window_s, choices.gpu_proxy_watts)
        profiles.append(profile_of(workload, own, derived, choices))
    return profiles


def profile_of(
    workload: Workload, pods: Sequence[MeasuredPod], derived: Derived, choices: ProfilingChoices
) -> WorkloadProfile:
    """Return the profile of a workload with *pods*, from what is *derived* of their measures."""
    hints, traits = newest_hints(pods, choices)
    profile = classify(hints, derived.signals, derives_class=choices.derives_class, traits=traits)
    evidence = {**derived.evidence, **traits.evidence(hints)}
    return WorkloadProfile(workload, shared_node(pods), profile, evidence, derived.signals)


def newest_hints(
    pods: Iterable[MeasuredPod], choices: ProfilingChoices = USUAL
) -> tuple[Hints, ThreadTraits]:
    """Return the hints and the traits of a workload: those of its newest pod."""
    newest = max(pods, key=lambda pod: (pod.created_at, pod.pod.name)).pod
    hints = read_hints(newest.annotations, newest.labels, choices.aliases)
    return hints, choices.thread_profiles.traits_of(newest)


def _by_workload(
    pods: Iterable[MeasuredPod], skipped: Container[str]
) -> Mapping[Workload, list[MeasuredPod]]:
    workloads: dict[Workload, list[MeasuredPod]] = defaultdict(list)
    for pod in pods:
        if pod.pod.namespace not in skipped:
            workloads[workload_of(pod.pod)].append(pod)
    return workloads


def shared_node(pods: Iterable[MeasuredPod]) -> str:
    """Return the node that all *pods* with a node share, else an empty text."""
    nodes = {pod.node for pod in pods if pod.node}
    return nodes.pop() if len(nodes) == 1 else ""
