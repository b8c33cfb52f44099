"""Scores of nodes for a pod, each with a sentence that gives the reason.

critical, high    ``100 x (1 - fenced after / budget)``, in whole cores: the least fenced node wins
low, background   ``100 x requests after / allocatable``: the fullest node with room wins
normal            50, the same as nodes without recent numbers
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from attrs import field, frozen

from temper_core import FENCING_TIERS, Tier
from temper_plugin_density.placement.asking import PACKING_TIERS, PodDemand
from temper_plugin_density.placement.facts import NodeFacts

HIGHEST = 100.0
NEUTRAL = 50.0
EXTENDER_HIGHEST = 10
"""kube-scheduler, k8s.io/kube-scheduler/extender/v1: ``MaxExtenderPriority``."""
OLD_AFTER_S = 600.0
MILLIS = 1000

UNKNOWN, SYSTEM, NORMAL = "unknown_node", "system_pod", "normal_pod"
UNTOLD, UNDATED, OLD = "no_agent", "undated", "old"
UNFENCED, UNSIZED = "no_budget", "no_allocatable"
IDLE, FULL_FENCE, FULL_NODE = "not_enforcing", "fence_full", "node_full"
CONTENTION, PACKING = "contention", "packing"

SENTENCES: Mapping[str, str] = {
    UNKNOWN: "the node watch has reported no node of this name",
    SYSTEM: "the pod belongs to the system layer, which fences no cores: all nodes are equal",
    NORMAL: "the pod's tier is normal: all nodes are equal",
    UNTOLD: "the node has no annotations of an agent",
    UNDATED: "the agent's annotations have no time of update",
    OLD: "the agent's numbers are of {told_at}, more than {old_after_s:.0f} s from now",
    UNSIZED: "the node has no allocatable CPU",
    UNFENCED: "the agent's annotations lack the fence budget or the threads per core",
    IDLE: "the agent's mode is {mode}: no cores are fenced",
    FULL_FENCE: "{fenced_after} whole cores would be fenced, and the limit is {budget_cores}",
    FULL_NODE: "requests would be {requests_after}m of {allocatable_millis}m: no room",
    CONTENTION: "{fenced_after} of {budget_cores} fenceable cores would be fenced, "
    "{fenced_now} of them without this pod",
    PACKING: "requests would be {requests_after}m of {allocatable_millis}m, "
    "{requests_now}m of them without this pod",
}
"""The reasons by rule. The fields are a score's inputs."""


@frozen
class TierSum:
    """The number of pods of a tier that are bound to a node, and their requests."""

    pods: int = 0
    millis: int = 0

    @classmethod
    def of(cls, millis: Iterable[int]) -> "TierSum":
        """Add up the requests of pods."""
        requests = tuple(millis)
        return cls(len(requests), sum(requests))

    def plus(self, millis: int) -> "TierSum":
        """Add a pod."""
        return TierSum(self.pods + 1, self.millis + millis)

    def cores(self, core_cpus: int) -> int:
        """Return the whole cores of a layer of these pods, at least one if there are pods."""
        return max(1, -(-self.millis // (MILLIS * core_cpus))) if self.pods else 0


@frozen
class Bound:
    """The requests of the pods that are bound to a node. System pods count in ``millis`` only."""

    millis: int = 0
    pods: int = 0
    critical: TierSum = TierSum()
    high: TierSum = TierSum()

    @classmethod
    def of(cls, demands: Iterable[PodDemand]) -> "Bound":
        """Add up pods."""
        demands = tuple(demands)
        fencing = [demand for demand in demands if not demand.is_system]
        return cls(
            sum(demand.millis for demand in demands),
            len(demands),
            TierSum.of(demand.millis for demand in fencing if demand.tier is Tier.CRITICAL),
            TierSum.of(demand.millis for demand in fencing if demand.tier is Tier.HIGH),
        )

    def cores(self, core_cpus: int) -> int:
        """Return the whole cores that critical and high pods request."""
        return self.critical.cores(core_cpus) + self.high.cores(core_cpus)

    def cores_with(self, demand: PodDemand, core_cpus: int) -> int:
        """Return the same with one more critical or high pod."""
        if demand.tier is Tier.CRITICAL:
            return self.critical.plus(demand.millis).cores(core_cpus) + self.high.cores(core_cpus)
        return self.critical.cores(core_cpus) + self.high.plus(demand.millis).cores(core_cpus)


@frozen
class Score:
    """The points of one node for one pod, 0 to 100, with their rule and inputs.

    ``extender_score`` is the scheduler's score, 0 to 10, and ``answer`` its JSON.
    """

    node: str
    points: float
    rule: str
    inputs: Mapping[str, object] = field(factory=dict)
    extender_score: int = field(init=False)
    answer: str = field(init=False, repr=False)

    @extender_score.default
    def _rounded(self) -> int:
        return int(self.points * EXTENDER_HIGHEST / HIGHEST + 0.5)

    @answer.default
    def _written(self) -> str:
        return f'{{"host":{json.dumps(self.node)},"score":{self.extender_score}}}'

    @property
    def reason(self) -> str:
        """The reason, as a sentence."""
        return SENTENCES[self.rule].format_map(self.inputs)


def score(demand: PodDemand, node: NodeFacts, bound: Bound, now: float) -> Score:
    """Score *node* for *demand*. *now* is in seconds since the epoch. Never raises."""
    if demand.is_system:
        return Score(node.name, NEUTRAL, SYSTEM)
    if demand.tier in FENCING_TIERS:
        return _unsettled(demand, node, now) or _contention(demand, node, bound)
    if demand.tier in PACKING_TIERS:
        return _unsettled(demand, node, now) or _packing(demand, node, bound)
    return Score(node.name, NEUTRAL, NORMAL)


def unknown(name: str) -> Score:
    """Score a node that no watch has reported."""
    return Score(name, NEUTRAL, UNKNOWN)


def is_recent(told_at: float, now: float) -> bool:
    """Whether numbers of that time still count. A time too far in the future does not."""
    return abs(now - told_at) <= OLD_AFTER_S


def _unsettled(demand: PodDemand, node: NodeFacts, now: float) -> Score | None:
    """Score a node with unusable numbers or without fences in force. None for other nodes."""
    fences = demand.tier in FENCING_TIERS
    if not node.mode:
        return Score(node.name, 0.0 if fences else NEUTRAL, UNTOLD)
    if node.told_at is not None and not is_recent(node.told_at, now):
        return Score(node.name, NEUTRAL, OLD, _age(node.told_at))
    if fences and not node.is_enforcing:
        return Score(node.name, 0.0, IDLE, {"mode": node.mode})
    if node.told_at is None:
        return Score(node.name, NEUTRAL, UNDATED)
    return None


def _contention(demand: PodDemand, node: NodeFacts, bound: Bound) -> Score:
    if node.core_cpus is None or node.budget_cores is None:
        return Score(node.name, NEUTRAL, UNFENCED)
    requested = bound.cores(node.core_cpus)
    requested_after = bound.cores_with(demand, node.core_cpus)
    # The agent counts cores that no request shows (thread groups, workloads of the host). Only the
    # API server knows the pods bound since the agent wrote. The larger of both counts is used.
    annotated = node.fenced_cores or 0
    now, after = (
        max(requested, annotated),
        max(requested_after, annotated + requested_after - requested),
    )
    inputs = {
        "fenced_after": after,
        "fenced_now": now,
        "budget_cores": node.budget_cores,
        "fenced_told": node.fenced_cores,
        "fenced_asked": requested,
        "core_cpus": node.core_cpus,
        "pod_millis": demand.millis,
    }
    if after > node.budget_cores:
        return Score(node.name, 0.0, FULL_FENCE, inputs)
    return _unless_full(
        Score(node.name, HIGHEST * (1 - after / node.budget_cores), CONTENTION, inputs),
        demand,
        node,
        bound,
    )


def _packing(demand: PodDemand, node: NodeFacts, bound: Bound) -> Score:
    sums = _requests(demand, node, bound)
    if not node.allocatable_millis:
        return Score(node.name, NEUTRAL, UNSIZED, sums)
    share = sums["requests_after"] / node.allocatable_millis
    packed = Score(node.name, min(HIGHEST, HIGHEST * share), PACKING, sums)
    return _unless_full(packed, demand, node, bound)


def _unless_full(computed: Score, demand: PodDemand, node: NodeFacts, bound: Bound) -> Score:
    """Return *computed*, or a score of 0 if the node has no room for the pod's requests."""
    after = max(bound.millis, node.tier_millis) + demand.millis
    if node.allocatable_millis is None or after <= node.allocatable_millis:
        return computed
    sums = _requests(demand, node, bound)
    return Score(node.name, 0.0, FULL_NODE, {**computed.inputs, **sums})


def _requests(demand: PodDemand, node: NodeFacts, bound: Bound) -> dict[str, int]:
    now = max(bound.millis, node.tier_millis)
    return {
        "requests_after": now + demand.millis,
        "requests_now": now,
        "allocatable_millis": node.allocatable_millis or 0,
        "requests_told": node.tier_millis,
        "requests_bound": bound.millis,
        "pod_millis": demand.millis,
    }


def _age(told_at: float) -> dict[str, object]:
    told_at_text = datetime.fromtimestamp(told_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"told_at": told_at_text, "old_after_s": OLD_AFTER_S}
