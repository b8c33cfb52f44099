"""The plan of each node by the policy and the pods, as pure functions."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from attrs import evolve, field, frozen

from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.controller.nodes import PROFILE_LABEL, KnownNode
from temper_plugin_power.controller.pods import KnownPod
from temper_plugin_power.controller.twins import Record, StoredTwin, hardware_of, shape_of
from temper_plugin_power.operating.buckets import Bucket, bucket_by
from temper_plugin_power.operating.caps import caps_of, effective_cpu_pct, uncapped_by
from temper_plugin_power.operating.facility import Facility, Supply, rack_totals, supply_of
from temper_plugin_power.operating.guard import (
    Cause,
    NodePod,
    Transition,
    blocking_cause,
    transition,
)
from temper_plugin_power.operating.partition import performance_nodes
from temper_plugin_power.operating.policies import (
    demand_of,
    queue_count,
    static_count,
    swapped_profiles,
)
from temper_plugin_power.operating.slicing import WHOLE, Slicing, slicing_of
from temper_plugin_power.operating.twin import (
    Hardware,
    Situation,
    Twin,
    is_advised_to_move,
    node_watts,
    twin_of,
)
from temper_plugin_power.resources.fields import number_at
from temper_plugin_power.settings.operator import OperatorSettings
from temper_plugin_power.workloads.owners import Workload

MANAGED_BY = {
    "static_partition": "static-partition-v1",
    "queue_aware_v1": "queue-aware-v1",
    "rule_swap_v1": "rule-swap-v1",
}


@frozen
class Situations:
    """The cluster at one moment. *pods* are those in scope, None if they are not known."""

    nodes: Sequence[KnownNode]
    twins: Mapping[str, StoredTwin]
    records: Mapping[str, Record]
    pods: Sequence[KnownPod] | None
    profiles: Mapping[Workload, PowerProfile]
    min_confidence: float
    now_s: int
    facility: Facility = Facility()


@frozen
class Draft:
    """The state that is to be in force on a node, before its surroundings are known."""

    node: KnownNode
    hardware: Hardware
    step: Transition
    caps: Mapping[str, Any]
    found: Sequence[tuple[KnownPod, Cause | None]]
    """Its pods, and why each one keeps it from becoming an eco node."""

    @property
    def cap_pcts(self) -> tuple[float, float]:
        """The caps of CPUs and GPUs in percent. 0 is none."""
        gpu_pct = number_at(self.caps, "gpu.powerCap.capPctOfMax")
        return effective_cpu_pct(self.caps, self.hardware), gpu_pct


@frozen
class NodePlan:
    """The next step of a node."""

    node: KnownNode
    transition: Transition
    twin: Twin
    spec: Mapping[str, Any]
    """Of its NodeTwin."""
    blocking: Mapping[Cause, int]
    movable: tuple[KnownPod, ...] = ()
    """Its pods that may be started elsewhere."""
    blockers: tuple[KnownPod, ...] = ()
    """Those that keep it from becoming an eco node."""
    density: float = 0.0
    slicing: Slicing | None = None
    """How to share its GPUs. None without any, and where it is not known how they can be shared."""
    gpus: int = 0
    without_cap: str = ""
    """The setting that leaves the node without a cap, empty if it has one."""


@frozen
class Plans:
    """The next step of all nodes."""

    nodes: tuple[NodePlan, ...] = ()
    performance_nodes: int = 0
    demand: Fraction = field(factory=Fraction)


def plan_nodes(seen: Situations, settings: OperatorSettings) -> Plans:
    """Return the next step of each node in scope. Nodes that take no pods are left as they are."""
    shapes = [shape_of(node, seen.records.get(node.name)) for node in seen.nodes]
    demand = _demand(seen, settings)
    density = {shape.name: shape.density for shape in shapes}
    ordered = sorted(density, key=lambda name: (-density[name], name))
    if settings.policy == "rule_swap_v1":
        turns = swapped_profiles(len(ordered), seen.now_s, 0)
        wanted = {name for name, profile in zip(ordered, turns, strict=True) if profile != "eco"}
    else:
        wanted = set(performance_nodes(shapes, _count(seen, settings, demand)))
    on_node: defaultdict[str, list[KnownPod]] = defaultdict(list)
    for pod in seen.pods or ():
        if pod.counts:
            on_node[pod.node].append(pod)
    drafts = []
    for node in seen.nodes:
        desired = "performance" if node.name in wanted else "eco"
        pods = None if seen.pods is None else on_node[node.name]
        drafts.append(_draft(node, desired, seen, settings, pods))
    racks = rack_totals(
        (draft.node.rack, node_watts(draft.hardware, *draft.cap_pcts)) for draft in drafts
    )
    planned = [
        evolve(_plan(draft, seen, settings, racks), density=density[draft.node.name])
        for draft in drafts
    ]
    return Plans(tuple(planned), len(wanted), demand)


def bucket_in(seen: Situations, pod: KnownPod) -> Bucket:
    """Return the bucket of a pod by itself and by the profile of its workload."""
    return bucket_by(pod.explicit, pod.hints, seen.profiles.get(pod.workload))


def _demand(seen: Situations, settings: OperatorSettings) -> Fraction:
    counted = (
        seen.profiles.get(pod.workload)
        for pod in seen.pods or ()
        if _is_demand(pod, settings) and bucket_in(seen, pod) is Bucket.PERFORMANCE
    )
    return demand_of(counted, seen.min_confidence, settings.weights)


def _is_demand(pod: KnownPod, settings: OperatorSettings) -> bool:
    is_queued = settings.queue_count_pending and not pod.node and not pod.is_deleting
    return pod.counts or is_queued


def _count(seen: Situations, settings: OperatorSettings, demand: Fraction) -> int:
    nodes = len(seen.nodes)
    if settings.policy == "static_partition":
        return static_count(nodes, settings.static_hp_frac)
    if seen.pods is None:
        return static_count(nodes, settings.queue_base_frac)
    return queue_count(nodes, demand, settings.queue)


def _draft(
    node: KnownNode,
    desired: str,
    seen: Situations,
    settings: OperatorSettings,
    pods: Sequence[KnownPod] | None,
) -> Draft:
    stored = seen.twins.get(node.name)
    found = [(pod, _cause(seen, pod)) for pod in pods or ()]
    blocking = sum(cause is not None for _, cause in found)
    in_force = _in_force(node, stored)
    step = transition(desired, in_force, None if pods is None else blocking)
    shares = settings.caps.shares
    hardware = hardware_of(node, seen.records.get(node.name), shares.gpu_models)
    return Draft(node, hardware, step, caps_of(step.in_force, shares, hardware), found)


def _plan(
    draft: Draft, seen: Situations, settings: OperatorSettings, racks: Mapping[str, float]
) -> NodePlan:
    node, step, pods = draft.node, draft.step, [pod for pod, _ in draft.found]
    rack_watts = racks.get(node.rack, 0.0) if settings.facility.enabled else 0.0
    supply = supply_of(seen.facility, rack_watts, settings.facility.psu_capacity_watts)
    twin = twin_of(draft.hardware, _situation(draft, seen.facility, supply))
    spec = {
        "nodeName": node.name,
        "profile": step.in_force,
        **draft.caps,
        "policy": {"name": MANAGED_BY[settings.policy]},
        "scheduling": {"draining": step.is_draining, "reschedulablePressure": twin.pressure},
    }
    record = seen.records.get(node.name)
    return NodePlan(
        *(node, step, twin, spec),
        blocking=Counter(cause for _, cause in draft.found if cause is not None),
        movable=tuple(pod for pod in pods if _is_movable(seen, pod)),
        blockers=tuple(pod for pod, cause in draft.found if cause is not None),
        slicing=_slicing(seen, record, pods) if draft.hardware.has_gpu else None,
        gpus=draft.hardware.gpus,
        without_cap=uncapped_by(step.in_force, settings.caps.shares, draft.hardware),
    )


def advised_workloads(plan: NodePlan) -> Mapping[Workload, str]:
    """Return the workloads of a node that had better be started elsewhere, with the reason."""
    reason = "the node drains" if plan.transition.is_draining else "the node is under stress"
    return {
        pod.workload: reason
        for pod in plan.movable
        if is_advised_to_move(plan.twin, pod.hints.workload_class or "standard", reschedulable=True)
    }


def _slicing(seen: Situations, record: Record | None, pods: Sequence[KnownPod]) -> Slicing | None:
    """Return how to share the GPUs of a node, None if it cannot be done or is not known."""
    profiles = {pod.workload: seen.profiles.get(pod.workload) for pod in pods}
    advised = slicing_of(
        profile.gpu.intensity
        for profile in profiles.values()
        if profile is not None and profile.counts("gpu.intensity", seen.min_confidence)
    )
    modes = () if record is None else (*record.slicing_modes, WHOLE)
    return advised if advised.mode in modes else None


def _in_force(node: KnownNode, stored: StoredTwin | None) -> str:
    """Return the profile whose caps a node has: by its twin, else by its label."""
    if stored is not None and stored.profile:
        return stored.profile
    return node.labels.get(PROFILE_LABEL, "performance")


def _cause(seen: Situations, pod: KnownPod) -> Cause | None:
    """Return why a pod keeps its node from becoming an eco node, None if it does not."""
    profile = seen.profiles.get(pod.workload)
    bucket = bucket_in(seen, pod)
    return blocking_cause(
        NodePod(bucket, pod.hints, profile, is_bound_to_node=pod.is_bound_to_node)
    )


def _is_movable(seen: Situations, pod: KnownPod) -> bool:
    """Return whether an annotation or the profile allows to start the pod elsewhere."""
    if pod.is_bound_to_node:
        return False
    if pod.hints.reschedulable is not None:
        return pod.hints.reschedulable
    profile = seen.profiles.get(pod.workload)
    return profile is not None and profile.reschedulable


def _situation(draft: Draft, facility: Facility, supply: Supply) -> Situation:
    cpu_pct, gpu_pct = draft.cap_pcts
    return Situation(
        draft.step.in_force,
        is_draining=draft.step.is_draining,
        cpu_cap_pct=cpu_pct,
        gpu_cap_pct=gpu_pct,
        ambient_celsius=facility.celsius_of(draft.node.cooling_zone) or 0.0,
        power_watts=supply.watts,
        capacity_watts=supply.capacity_watts,
        measured_pue=facility.pue,
    )
