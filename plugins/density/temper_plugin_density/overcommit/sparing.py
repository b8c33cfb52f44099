"""Rules for pods that are left unchanged, each with its reason."""

from temper_core import QosClass, Tier
from temper_plugin_density.overcommit.names import CHOICE, DISABLED
from temper_plugin_density.overcommit.outcomes import Outcome
from temper_plugin_density.overcommit.pod_objects import PodObject
from temper_plugin_density.overcommit.policy import Policy

MIRROR = "kubernetes.io/config.mirror"

Spared = tuple[Outcome, str]


def why_spared(pod: PodObject, policy: Policy) -> Spared | None:
    """Return why *pod* must stay unchanged. None if it may be lowered."""
    return _by_choice(pod) or _by_tier(pod, policy) or _by_qos_class(pod) or _by_limit(pod)


def _by_choice(pod: PodObject) -> Spared | None:
    annotations = pod.pod.annotations
    if annotations.get(CHOICE) == DISABLED:
        return Outcome.OPTED_OUT, f"it is annotated {CHOICE}: {DISABLED}"
    if MIRROR in annotations:
        return Outcome.STATIC, "it mirrors a static pod, which runs with the requests of its file"
    return None


def _by_tier(pod: PodObject, policy: Policy) -> Spared | None:
    if pod.pod.priority is None and pod.pod.priority_class:
        priority_class = pod.pod.priority_class
        return (
            Outcome.PRIORITY_UNKNOWN,
            f"the value of its PriorityClass {priority_class!r} is not known",
        )
    tier, reason = policy.tier(pod.pod)
    if tier is Tier.CRITICAL:
        return Outcome.CRITICAL, f"its tier is {tier}: {reason}"
    return None


def _by_qos_class(pod: PodObject) -> Spared | None:
    # An empty table counts too: the core reads it as the pod's own resources.
    if pod.spec.get("resources") is not None:
        return Outcome.POD_LEVEL, "it has resources of its own, which its containers share"
    if pod.pod.qos_class is QosClass.GUARANTEED:
        return (
            Outcome.GUARANTEED,
            "it is Guaranteed, and a lower request would change its QoS class",
        )
    return None


def _by_limit(pod: PodObject) -> Spared | None:
    """Spare pods that the API server will refuse: with lowered requests it might admit them."""
    for request in pod.requests:
        if request.limit_millis is not None and request.millis > request.limit_millis:
            reason = f"container {request.container!r} asks for more CPU than its limit"
            return Outcome.INVALID, reason
    return None
