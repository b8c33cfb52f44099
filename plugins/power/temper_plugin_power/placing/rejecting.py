"""Finds the nodes that do not take a pod."""

from temper_plugin_power.placing.subjects import NodeView, PodView

REJECTING_CLASSES = ("eco", "draining")
LABEL = "label"
REJECTED = "temper: performance pod rejected from eco/draining node"
REJECTED_BY_LABEL = "temper: performance pod rejected from eco node (label fallback)"


def rejection(pod: PodView, node: NodeView) -> str | None:
    """Return why *node* does not take *pod*, None if it does.

    Only performance pods are rejected, and pods that were lately evicted from an eco node. Exempt
    pods never are.
    """
    node_class = None if node.twin is None else node.twin.schedulable_class
    is_fresh = node.fresh_twin() is not None
    cause = rejection_cause(node_class, node.label_profile, is_fresh=is_fresh)
    return None if cause is None or not is_filtered(pod) else rejection_text(pod, cause)


def is_filtered(pod: PodView) -> bool:
    """Whether some nodes do not take *pod*."""
    is_performance = pod.standing.workload_class == "performance"
    return not pod.is_exempt and (is_performance or pod.evicted_from == "eco")


def rejection_cause(node_class: str | None, label_profile: str, *, is_fresh: bool) -> str | None:
    """Return why a node takes no filtered pod: eco, draining or label. None if it does.

    *node_class* is that of its twin. The label decides unless the twin *is_fresh* and has a class.
    """
    if node_class in REJECTING_CLASSES:  # at any age: no twin comes while the API server is away
        return node_class
    if is_fresh and node_class == "performance":
        return None
    return LABEL if label_profile == "eco" else None


def rejection_text(pod: PodView, cause: str) -> str:
    """Return the reason that the scheduler shows."""
    is_performance = pod.standing.workload_class == "performance"
    source = pod.standing.class_origin if is_performance else "eviction"
    return f"{REJECTED_BY_LABEL if cause == LABEL else REJECTED} (class from {source})"
