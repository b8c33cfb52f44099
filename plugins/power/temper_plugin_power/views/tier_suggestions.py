"""Tiers for performance pods that have none."""

from collections.abc import Iterable, Mapping

from temper_core import Pod
from temper_plugin_power.classifier.hints import read_hints
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.standing import standing_of
from temper_plugin_power.workloads.owners import Workload, workload_of

SUGGESTED = "temper-high"
"""The PriorityClass of the chart for the tier ``high``."""
CAUSE = "is of class performance and has no PriorityClass"
ADVICE = f"priorityClassName {SUGGESTED} would give its pods the tier high"


def has_tier(pod: Pod) -> bool:
    """Return whether the pod has a tier, or a PriorityClass from which one follows."""
    return pod.tier is not None or bool(pod.priority or pod.priority_class)


def workloads_without_tier(
    pods: Iterable[Pod], profiles: Mapping[Workload, PowerProfile]
) -> list[Workload]:
    """Return the workloads with pods of class performance that have no tier, in order.

    The class is that of the pod's annotation, or of its workload's profile.
    """
    found = set()
    for pod in pods:
        workload = workload_of(pod)
        hints = read_hints(pod.annotations, pod.labels)
        standing = standing_of(hints, profiles.get(workload))
        if standing.workload_class == "performance" and not has_tier(pod):
            found.add(workload)
    return sorted(found)


def suggestion(workload: Workload) -> str:
    """Return what to do for a workload without a tier."""
    name = f"{workload.namespace}/{workload.kind}/{workload.name}"
    return f"{name} {CAUSE}: {ADVICE}"
