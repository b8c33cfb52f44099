"""Nodes and pods as scoring sees them, from objects of a cluster."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import evolve, frozen

from temper_core import Pod
from temper_plugin_power.classifier.hints import read_hints
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.defaults import MIN_CONFIDENCE
from temper_plugin_power.operating.buckets import PROFILE_KEY
from temper_plugin_power.placing.demands import demand_of
from temper_plugin_power.placing.exempting import is_exempt
from temper_plugin_power.placing.subjects import NodeView, PodView
from temper_plugin_power.resources.reading import (
    age_s,
    hardware_at,
    node_name,
    profile_at,
    twin_at,
    workload_at,
)
from temper_plugin_power.standing import standing_of
from temper_plugin_power.workloads.owners import Workload, workload_of


@frozen
class ClusterView:
    """Nodes by name, and profiles by workload."""

    nodes: Mapping[str, NodeView]
    profiles: Mapping[Workload, PowerProfile]

    def pod_view(
        self, pod: Pod, spec: Mapping[str, Any], min_confidence: float = MIN_CONFIDENCE
    ) -> PodView:
        """Return what is known of a *pod*, by itself and by the profile of its workload."""
        workload = workload_of(pod)
        hints = read_hints(pod.annotations, pod.labels)
        profile = self.profiles.get(workload)
        standing = standing_of(hints, profile, min_confidence, workload.profile_name)
        demand = demand_of(spec, standing.workload_class)
        return PodView(standing, demand, is_exempt=is_exempt(spec))


def cluster_view(objects: Iterable[object], now: datetime) -> ClusterView:
    """Return the view of Node, NodeTwin, NodeHardware and WorkloadProfile objects at *now*, in UTC.

    Objects of other kinds are skipped.
    """
    nodes: dict[str, NodeView] = {}
    profiles = {}
    for each in objects:
        if not isinstance(each, Mapping):
            continue
        kind, name = each.get("kind"), node_name(each)
        node = nodes.get(name, NodeView())
        if kind == "WorkloadProfile":
            profiles[workload_at(each)] = profile_at(each)
        elif kind == "NodeTwin":
            nodes[name] = evolve(node, twin=twin_at(each), age_s=age_s(each, now))
        elif kind == "NodeHardware":
            nodes[name] = evolve(node, hardware=hardware_at(each))
        elif kind == "Node":
            nodes[name] = evolve(node, label_profile=_label(each))
    return ClusterView(nodes, profiles)


def _label(node: Mapping[str, Any]) -> str:
    """Return the node label ``power-profile``, whose key has dots."""
    metadata = node.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return str(labels.get(PROFILE_KEY, "")) if isinstance(labels, Mapping) else ""
