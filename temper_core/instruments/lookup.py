"""Pods, cgroups and thread groups as of the last plan."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from attrs import frozen

from temper_core.plan.membership import layer_of
from temper_core.profiles.covering import first_taker
from temper_core.records.layers import Layer
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.pods import Pod
from temper_core.records.thread_groups import ThreadGroup
from temper_core.records.threads import ThreadIdentity


@frozen
class PlanLookup:
    """Look-ups in the plan that *current* returns. Implements ``NodeLookup``."""

    current: Callable[[], LayerPlan | None]

    @property
    def plan(self) -> LayerPlan | None:
        """The plan by which pods are placed now, None before the first."""
        return self.current()

    def pods(self) -> Sequence[Pod]:
        """Return the pods of this node."""
        plan = self.current()
        return tuple(assignment.pod for assignment in plan.assignments) if plan is not None else ()

    def pod(self, key: str) -> Pod | None:
        """Return the pod with that key (``namespace/name``), None if there is none."""
        assignment = self._assignment(key)
        return assignment.pod if assignment is not None else None

    def pod_of_cgroup(self, path: str) -> Pod | None:
        """Return the pod whose cgroup is at or above *path* (``a/b/c``), None if there is none."""
        plan = self.current()
        if plan is None:
            return None
        by_cgroup = _pods_by_cgroup(_Identity(plan))
        parts = path.strip("/").split("/")
        above = ("/".join(parts[:count]) + "/" for count in range(len(parts), 0, -1))
        return next((by_cgroup[cgroup] for cgroup in above if cgroup in by_cgroup), None)

    def thread_group_of(self, pod: str, thread: ThreadIdentity) -> ThreadGroup | None:
        """Return the group of *pod*'s profile that matches *thread*, None without a profile."""
        assignment = self._assignment(pod)
        if assignment is None or assignment.profile is None:
            return None
        return first_taker(assignment.profile.profile.thread_groups, thread)

    def layer_of(self, thread: ThreadIdentity) -> Layer | None:
        """Return the layer of *thread*, None before the first plan."""
        plan = self.current()
        return layer_of(plan, thread) if plan is not None else None

    def _assignment(self, key: str) -> Assignment | None:
        plan = self.current()
        matches = (
            (assignment for assignment in plan.assignments if assignment.pod.key == key)
            if plan
            else iter(())
        )
        return next(matches, None)


@frozen(eq=False)
class _Identity:
    """A plan compared by identity, because comparing plans by value is slow."""

    plan: LayerPlan

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.plan is self.plan

    def __hash__(self) -> int:
        return id(self.plan)


@lru_cache(maxsize=1)
def _pods_by_cgroup(of: _Identity) -> Mapping[str, Pod]:
    return {
        path: assignment.pod
        for assignment in of.plan.assignments
        for path in assignment.pod.cgroups
    }
