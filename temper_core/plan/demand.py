"""The demand of a tier's pods on its layer, in millicores, and its text."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from temper_core.plan.capacity import Capacity, counted
from temper_core.plan.groups import TierPods
from temper_core.profiles.conditions import GroupTarget, tier_conditions
from temper_core.records.thread_groups import Treatment

if TYPE_CHECKING:
    from fractions import Fraction

    Millis = int | Fraction


@frozen
class Demand:
    """Requests and limits of the pods of one layer. No limit if any of them has none."""

    pods: int
    requests: "Millis"
    limits: "Millis | None"

    def cores(self, capacity: Capacity) -> int:
        """Return the whole cores that the requests need."""
        return capacity.cores_for(self.requests)

    def ceiling(self, capacity: Capacity) -> int | None:
        """Return the most cores that the limits allow. ``None`` without a limit."""
        if self.limits is None:
            return None
        return max(self.cores(capacity), capacity.cores_for(self.limits))

    def describe(self) -> str:
        """Return the demand as text."""
        pods = f"{counted(self.pods, 'pod')} request" + "s" * (self.pods == 1)
        limits = "no limit" if self.limits is None else f"limits {in_millis(self.limits)}"
        return f"{pods} {in_millis(self.requests)} ({limits})"


def tier_demand(
    all_tier_pods: Iterable[TierPods], goals: Mapping[str, GroupTarget]
) -> Demand | None:
    """Add up the demand that stays in the tier's layer under *goals*. ``None`` if no thread does.

    An exclusive group with its own layer takes its share of every request and limit with it.
    """
    pods = 0
    requests: Millis = 0
    limits: Millis | None = 0
    for tier_pods in all_tier_pods:
        share = _share_left(tier_pods, goals)
        for member in tier_pods.members if stays_in_tier(tier_pods, goals) else ():
            pods += 1
            requests += share * member.pod.cpu_request_millis
            limit = member.pod.cpu_limit_millis
            limits = None if limit is None or limits is None else limits + share * limit
    return Demand(pods, requests, limits) if pods else None


def stays_in_tier(tier_pods: TierPods, goals: Mapping[str, GroupTarget]) -> bool:
    """Whether any thread of the pods stays in the tier's layer."""
    if any(member.outside for member in tier_pods.members):
        return True
    return bool(tier_conditions(tier_pods.parts(goals)))


def in_millis(amount: "Millis") -> str:
    """Format millicores as Kubernetes does."""
    return f"{amount}m" if amount == int(amount) else f"{float(amount):.1f}m"


def _share_left(tier_pods: TierPods, goals: Mapping[str, GroupTarget]) -> "Millis":
    exclusive_share = sum(
        request.fraction
        for request in tier_pods.group_requests
        if request.treatment is Treatment.EXCLUSIVE and goals[request.name] is GroupTarget.OWN
    )
    return max(0, 1 - exclusive_share)
