"""Nodes and pods as the API server has them, made up."""

from datetime import UTC, datetime

from temper_core import Tier, load_settings
from temper_plugin_density.placement.asking import PodDemand, PodReader
from temper_plugin_density.placement.facts import NodeFacts
from temper_plugin_density.placement.scoring import Bound

NOW = 1_790_000_000.0
PRIORITIES = {
    Tier.CRITICAL: ("temper-critical", 1_000_000),
    Tier.HIGH: ("temper-high", 100_000),
    Tier.NORMAL: ("temper-normal", 0),
    Tier.LOW: ("temper-low", -100),
    Tier.BACKGROUND: ("temper-background", -1000),
}
"""The classes that the chart installs."""

READER = PodReader(load_settings(None).priority_mapping)


def demand(tier, millis=1000, pod="shop/new", **changes):
    return PodDemand(pod, tier, millis, **changes)


def facts(name="node-1", **changes):
    """A node of 8 cores and 16 CPUs that enforces, nothing is on it, and it was told just now."""
    given = {
        "allocatable_millis": 16_000,
        "mode": "enforcing",
        "told_at": NOW,
        "fenced_cores": 0,
        "budget_cores": 7,
        "core_cpus": 2,
    }
    return NodeFacts(name, **{**given, **changes})


def bound(*pods):
    """What pods ask for, each (tier, millis)."""
    return Bound.of(demand(tier, millis) for tier, millis in pods)


def rfc3339(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node_object(name="node-1", cpu="16", **annotations):
    """A Node object; ``agent_mode`` stands for ``temper.codes/agent-mode``."""
    said = {f"temper.codes/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {
        "kind": "Node",
        "metadata": {"name": name, "annotations": said, "resourceVersion": "1"},
        "status": {"allocatable": {"cpu": cpu, "memory": "64Gi"}},
    }


def told(at, **changes):
    """The annotations of an agent that enforces on 8 cores."""
    given = {
        "agent_mode": "enforcing",
        "tiers_updated": rfc3339(at),
        "fenced_cores": "0",
        "fence_budget_cores": "7",
        "threads_per_core": "2",
    }
    return {**given, **changes}


def pod_object(name, tier=None, cpu=None, node=None, **metadata):
    """A Pod object; without *tier* it names no class."""
    container = {"name": "app", "image": "registry.example/app:1"}
    if cpu is not None:
        container["resources"] = {"requests": {"cpu": cpu}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if tier is not None:
        spec["priorityClassName"], spec["priority"] = PRIORITIES[tier]
    if node is not None:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
