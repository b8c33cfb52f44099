"""Writes NodeTwins and the labels of nodes."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import structlog
from attrs import frozen

from temper_kube.api_server import ApiServer
from temper_kube.failures import ConflictError
from temper_kube.list_pages import Json
from temper_plugin_power.controller.merge_changes import merge_change
from temper_plugin_power.controller.node_plans import NodePlan, advised_workloads
from temper_plugin_power.controller.nodes import PROFILE_LABEL
from temper_plugin_power.controller.owners import reference_to
from temper_plugin_power.controller.pods import Owner
from temper_plugin_power.controller.twins import (
    OF_THE_NODE,
    TWINS,
    StoredTwin,
    stored_twin,
)
from temper_plugin_power.resources.definitions import GROUP, VERSION

KIND = "NodeTwin"
MOST_ADVICE = 50
"""Workloads that a twin advises to start elsewhere."""
FRESH_S = 120.0
"""A twin is written again at this age. At five minutes it would be stale to the scheduler."""
UPDATED = "lastUpdated"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class TwinWriter:
    """Writes what differs. *wrote* gets each NodeTwin as the server has it then.

    Every call may raise MachineError.
    """

    server: ApiServer
    now: Callable[[], datetime]
    wrote: Callable[[Json], object]
    writes_labels: bool
    """Whether nodes are labelled. Otherwise the change is only logged."""

    def write(self, plan: NodePlan, stored: StoredTwin | None) -> None:
        """Bring the NodeTwin of a node, and its label, to the state of *plan*."""
        if stored is None:
            stored = self._create(plan)
        try:
            self._update(plan, stored)
        except ConflictError:
            self._update(plan, stored_twin(self.server.get(f"{TWINS}/{stored.name}")))
        self._label(plan)

    def _create(self, plan: NodePlan) -> StoredTwin:
        # Kubernetes removes the twin with its node.
        owner = Owner("v1", "Node", plan.node.name, plan.node.uid)
        document = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "metadata": {"name": plan.node.name, "ownerReferences": [reference_to(owner)]},
            "spec": plan.spec,
        }
        try:
            made = self.server.post(TWINS, document)
        except ConflictError:
            made = self.server.get(f"{TWINS}/{plan.node.name}")
        self.wrote(made)
        return stored_twin(made)

    def _update(self, plan: NodePlan, stored: StoredTwin) -> None:
        path, version = f"{TWINS}/{stored.name}", stored.version
        spec = merge_change(stored.spec, plan.spec)
        if spec:
            change = {"metadata": {"resourceVersion": version}, "spec": spec}
            written = self.server.patch(path, change)
            self.wrote(written)
            version = stored_twin(written).version
        status = merge_change(stored.status, self._status(plan), (*OF_THE_NODE, UPDATED))
        age_s = stored.age_s(self.now())
        if status or age_s is None or not 0 <= age_s < FRESH_S:
            at = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            change = {
                "metadata": {"resourceVersion": version},
                "status": {**status, UPDATED: at},
            }
            self.wrote(self.server.patch(f"{path}/status", change))

    def _status(self, plan: NodePlan) -> Mapping[str, Any]:
        twin = plan.twin
        return {
            "schedulableClass": twin.schedulable_class,
            "predictedPowerHeadroomScore": twin.headroom,
            "predictedCoolingStressScore": twin.cooling_stress,
            "predictedPsuStressScore": twin.psu_stress,
            "effectiveCapState": {"cpuPct": twin.cpu_pct, "gpuPct": twin.gpu_pct},
            "hardwareDensityScore": twin.density,
            "estimatedPUE": twin.pue,
            "rescheduleRecommendations": _advice(plan),
            **_sharing(plan),
            **({} if twin.measured_pue is None else {"measuredPUE": twin.measured_pue}),
        }

    def _label(self, plan: NodePlan) -> None:
        wanted, node = plan.transition.in_force, plan.node
        if node.labels.get(PROFILE_LABEL) == wanted:
            return
        if not self.writes_labels:
            log.info("node_not_labelled", node=node.name, label=wanted, reason="dry run")
            return
        change = {"metadata": {"labels": {PROFILE_LABEL: wanted}}}
        self.server.patch(f"/api/v1/nodes/{node.name}", change)


def _advice(plan: NodePlan) -> list[Mapping[str, Any]]:
    """Return the workloads that had better be started elsewhere, by name."""
    advised = advised_workloads(plan)
    return [
        {
            "workloadRef": {"kind": each.kind, "namespace": each.namespace, "name": each.name},
            "reason": advised[each],
        }
        for each in sorted(advised)[:MOST_ADVICE]
    ]


def _sharing(plan: NodePlan) -> Mapping[str, Any]:
    """Return the advice how to share the GPUs of a node, nothing without any."""
    if plan.slicing is None:
        return {}
    advised = plan.slicing
    advice = {
        "mode": advised.mode,
        "sliceType": advised.slice_type,
        "slicesPerGPU": advised.per_gpu,
        "totalSlices": advised.per_gpu * plan.gpus,
        "reason": advised.reason,
        "estimatedUtilizationGain": advised.gain,
        "confidence": advised.confidence,
    }
    return {"gpuSlicingRecommendation": advice}
