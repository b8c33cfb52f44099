"""A pod's tier and CPU request, read from Pod objects as the agents read them."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from temper_core import InputError, Pod, Tier, read_pod_object, tier_of

PACKING_TIERS = (Tier.LOW, Tier.BACKGROUND)


@frozen
class PodDemand:
    """A pod to place. Pods with ``is_system`` belong to the system layer and fence no cores."""

    pod: str
    tier: Tier
    millis: int
    is_system: bool = False
    tier_reason: str = ""


@frozen
class BoundPod:
    """A pod that is bound to a node and requests CPU there. Terminating pods are left out."""

    uid: str
    node: str
    demand: PodDemand


class PodReader:
    """Reads Pod objects with one mapping of priorities to tiers."""

    def __init__(self, mapping: Any) -> None:  # noqa: ANN401 - settings are not public
        self._mapping = mapping

    def demand(self, item: Mapping[str, Any]) -> PodDemand:
        """Read a pod to place. Raise InputError for anything else."""
        pod = read_pod_object(item, source="Pod")
        if pod is None:
            raise InputError("Pod: has terminated, or is being deleted")
        return self._wish_of(pod)

    def bound(
        self, item: Mapping[str, Any], doubted: Callable[[str], object] | None = None
    ) -> BoundPod | None:
        """Read a bound pod. None if it is not bound, has terminated or is being deleted.

        A quantity that cannot be read counts as 0 if *doubted* takes the reason. Raises InputError
        for a malformed object.
        """
        pod = read_pod_object(item, source="Pod", doubted=doubted)
        node = item.get("spec", {}).get("nodeName")
        if pod is None or not node:
            return None
        return BoundPod(uid_of(item), str(node), self._wish_of(pod))

    def _wish_of(self, pod: Pod) -> PodDemand:
        tier, reason = tier_of(pod, self._mapping)
        is_system = (pod.priority or 0) >= self._mapping.system
        return PodDemand(pod.key, tier, pod.cpu_request_millis, is_system, reason)


def uid_of(item: Mapping[str, Any]) -> str:
    """Return a pod object's own uid. A static pod's cgroup has a different one."""
    metadata = item.get("metadata")
    return str(metadata.get("uid", "")) if isinstance(metadata, Mapping) else ""
