"""Tiers for performance pods that have none."""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, frozen

from temper_core import DocumentError, Pod, read_pod_object
from temper_plugin_power.classifier.hints import Hints, read_hints
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.resources.reading import CUT
from temper_plugin_power.standing import standing_of
from temper_plugin_power.workloads.owners import Workload, workload_of

SUGGESTED = "temper-high"
"""The PriorityClass of the chart for the tier ``high``."""
CAUSE = "is of class performance and has no PriorityClass"
ADVICE = f"priorityClassName {SUGGESTED} would give its pods the tier high"


@frozen
class UntieredPod:
    """A pod that has no tier, by its workload and its hints."""

    workload: Workload
    hints: Hints


def untiered_pod(document: Mapping[str, Any]) -> UntieredPod | None:
    """Return what is kept of a pod. None if it is invalid, has ended or has a tier."""
    try:
        pod = read_pod_object(document, source="a pod")
    except DocumentError:
        return None
    if pod is None or has_tier(pod):
        return None
    workload = workload_of(pod)
    workload = evolve(workload, name=workload.name[:CUT])
    return UntieredPod(workload, read_hints(pod.annotations, pod.labels))


def has_tier(pod: Pod) -> bool:
    """Return whether the pod has a tier, or a PriorityClass from which one follows."""
    return pod.tier is not None or bool(pod.priority or pod.priority_class)


def workloads_without_tier(
    pods: Iterable[UntieredPod], profiles: Mapping[Workload, PowerProfile]
) -> list[Workload]:
    """Return the workloads of the *pods* of class performance, in order.

    The class is that of the pod's annotation, or of its workload's profile.
    """
    found = set()
    for pod in pods:
        standing = standing_of(pod.hints, profiles.get(pod.workload))
        if standing.workload_class == "performance":
            found.add(pod.workload)
    return sorted(found)


def suggestion(workload: Workload) -> str:
    """Return what to do for a workload without a tier."""
    name = f"{workload.namespace}/{workload.kind}/{workload.name}"
    return f"{name} {CAUSE}: {ADVICE}"
