"""Which pods are left as they are, each with the reason."""

from temper_core import QosClass, Tier
from temper_plugin_density.overcommit.names import CHOICE, DISABLED
from temper_plugin_density.overcommit.outcomes import Outcome
from temper_plugin_density.overcommit.pod_objects import PodObject
from temper_plugin_density.overcommit.policy import Policy

MIRROR = "kubernetes.io/config.mirror"

Spared = tuple[Outcome, str]


def why_spared(pod: PodObject, policy: Policy) -> Spared | None:
    """Return why nothing of *pod* may be changed; None where something may."""
    return _by_choice(pod) or _by_tier(pod, policy) or _by_qos_class(pod) or _by_limit(pod)


def _by_choice(pod: PodObject) -> Spared | None:
    annotations = pod.pod.annotations
    if annotations.get(CHOICE) == DISABLED:
        return Outcome.OPTED_OUT, f"it is annotated {CHOICE}: {DISABLED}"
    if MIRROR in annotations:
        return Outcome.STATIC, "it mirrors a static pod, which runs as its file says"
    return None


def _by_tier(pod: PodObject, policy: Policy) -> Spared | None:
    if pod.pod.priority is None and pod.pod.priority_class:
        named = pod.pod.priority_class
        return Outcome.PRIORITY_UNKNOWN, f"the value of its PriorityClass {named!r} is not known"
    tier, reason = policy.tier(pod.pod)
    if tier is Tier.CRITICAL:
        return Outcome.CRITICAL, f"its tier is {tier}: {reason}"
    return None


def _by_qos_class(pod: PodObject) -> Spared | None:
    # Empty ones as well: the core takes whatever stands there for the pod's own.
    if pod.spec.get("resources") is not None:
        return Outcome.POD_LEVEL, "it has resources of its own, which its containers share"
    if pod.pod.qos_class is QosClass.GUARANTEED:
        return Outcome.GUARANTEED, "it is Guaranteed, and would not be with a lower request"
    return None


def _by_limit(pod: PodObject) -> Spared | None:
    """Spare what the API server will refuse: lowered to its limit, it might be taken."""
    for request in pod.requests:
        if request.limit_millis is not None and request.millis > request.limit_millis:
            reason = f"container {request.container!r} asks for more CPU than its limit"
            return Outcome.INVALID, reason
    return None
