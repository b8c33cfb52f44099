"""Moves pods off draining nodes, if their annotation lets them be started elsewhere."""

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import structlog
from attrs import define, field

from temper_core import MachineError
from temper_kube.api_server import ApiServer
from temper_kube.failures import RefusalError
from temper_plugin_power.controller.kube_events import Events, Subject
from temper_plugin_power.controller.leading import NotLeadingError
from temper_plugin_power.controller.node_plans import NodePlan, Plans
from temper_plugin_power.controller.owners import may_exist, path_of
from temper_plugin_power.controller.pods import KnownPod, Owner
from temper_plugin_power.settings.durations import seconds
from temper_plugin_power.settings.operator import ReschedulerSettings
from temper_plugin_power.workloads.owners import Workload

EVICTION = "joulie.io/last-eviction"
REMEMBERED = ("ReplicaSet", "StatefulSet", "Job")
"""Owners that remember an eviction, for the scheduler extender. They make the pod again."""
TOO_MANY = 429
REASON = "draining"
EVICTED, REFUSED, DRY_RUN, NO_OWNER = "evicted", "disruption_budget", "dry_run", "no_owner"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define
class Rescheduler:
    """Evicts at most some pods of each draining node in an interval. Off by default.

    Only pods are evicted that keep their node from becoming an eco node, and whose own annotation
    is ``reschedulable: true``. The API server keeps their disruption budgets. *counted* is called
    with the node, the namespace and the outcome.
    """

    server: ApiServer
    settings: ReschedulerSettings
    events: Events
    counted: Callable[[str, str, str], object]
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def run(
        self, closing: threading.Event, plans: Callable[[], Plans], may_write: Callable[[], bool]
    ) -> None:
        """Work until *closing* is set. *plans* returns those of the last decision."""
        while self.settings.enabled and not closing.wait(seconds(self.settings.interval)):
            if may_write():
                self.move(plans())

    def move(self, plans: Plans) -> None:
        """Evict what is due. One node that fails stops no other."""
        for plan in plans.nodes:
            if plan.transition.is_draining:
                try:
                    self._move_from(plan)
                except NotLeadingError:
                    return
                except MachineError as error:
                    log.warning("pod_not_evicted", node=plan.node.name, reason=str(error)[:300])

    def _move_from(self, plan: NodePlan) -> None:
        movable = {pod.measured.pod.uid for pod in plan.movable}
        candidates = [
            pod
            for pod in plan.blockers
            if pod.hints.reschedulable is True and pod.measured.pod.uid in movable
        ]
        ordered = sorted(candidates, key=lambda pod: pod.measured.pod.key)
        for pod in ordered[: self.settings.max_evictions_per_node]:
            outcome = self._evict(pod, plan)
            self.counted(plan.node.name, pod.workload.namespace, outcome)

    def _evict(self, pod: KnownPod, plan: NodePlan) -> str:
        """Remember the eviction at the owner, and evict the pod. Return the outcome."""
        known, owner = pod.measured.pod, pod.owner
        if owner is None or owner.kind not in REMEMBERED or not may_exist(owner.name):
            return NO_OWNER
        if self.settings.dry_run:
            log.info("pod_not_evicted", pod=known.key, node=plan.node.name, reason="dry run")
            return DRY_RUN
        self._remember(owner, known.namespace, plan)
        path = f"/api/v1/namespaces/{known.namespace}/pods/{known.name}/eviction"
        try:
            self.server.post(path, _eviction(known.namespace, known.name, known.uid))
        except RefusalError as error:
            if error.status == TOO_MANY:
                return REFUSED
            raise
        subject = Subject("v1", "Pod", known.name, known.namespace, known.uid)
        self.events.tell(subject, "PowerEviction", f"node {plan.node.name} is to be an eco node")
        log.info("pod_evicted", pod=known.key, node=plan.node.name)
        return EVICTED

    def _remember(self, owner: Owner, namespace: str, plan: NodePlan) -> None:
        at = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        said: Mapping[str, Any] = {
            f"{EVICTION}-from-class": plan.transition.desired,
            f"{EVICTION}-reason": REASON,
            f"{EVICTION}-time": at,
        }
        path = path_of(Workload(namespace, owner.kind, owner.name))
        self.server.patch(path, {"metadata": {"annotations": said}})


def _eviction(namespace: str, name: str, uid: str) -> Mapping[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
