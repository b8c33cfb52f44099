"""The CustomResourceDefinitions of the kinds: names, columns, subresources."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from temper_plugin_power.resources.kinds import NODE_HARDWARE, NODE_TWIN, WORKLOAD_PROFILE
from temper_plugin_power.resources.schemas import Schema

GROUP, VERSION = "joulie.io", "v1alpha1"


@frozen
class Column:
    """A column of ``kubectl get``."""

    name: str
    path: str
    type: str = "string"


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@frozen
class Definition:
    """A kind of objects, with its schema and the columns that kubectl prints."""

    kind: str
    plural: str
    short: str
    is_namespaced: bool
    schema: Schema
    columns: tuple[Column, ...]

    def as_object(self) -> Mapping[str, Any]:
        """Return the CustomResourceDefinition."""
        columns = [
            {"name": each.name, "type": each.type, "jsonPath": each.path} for each in self.columns
        ]
        version = {
            "name": VERSION,
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "additionalPrinterColumns": columns,
            "schema": {"openAPIV3Schema": self.schema},
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced" if self.is_namespaced else "Cluster",
                "names": {
                    "kind": self.kind,
                    "listKind": f"{self.kind}List",
                    "plural": self.plural,
                    "singular": self.kind.lower(),
                    "shortNames": [self.short],
                },
                "versions": [version],
            },
        }


DEFINITIONS = (
    Definition(
        "WorkloadProfile",
        "workloadprofiles",
        "wp",
        is_namespaced=True,
        schema=WORKLOAD_PROFILE,
        columns=(
            Column("Node", ".spec.nodeName"),
            Column("Criticality", ".status.criticality.class"),
            Column("CPU-Bound", ".status.cpu.bound"),
            Column("GPU-Bound", ".status.gpu.bound"),
            Column("Reschedulable", ".status.migratability.reschedulable", "boolean"),
            Column("Confidence", ".status.confidence", "number"),
            AGE,
        ),
    ),
    Definition(
        "NodeTwin",
        "nodetwins",
        "nt",
        is_namespaced=False,
        schema=NODE_TWIN,
        columns=(
            Column("Node", ".spec.nodeName"),
            Column("Profile", ".spec.profile"),
            Column("Class", ".status.schedulableClass"),
            Column("PowerHeadroom", ".status.predictedPowerHeadroomScore", "number"),
            Column("CoolingStress", ".status.predictedCoolingStressScore", "number"),
            Column("PSUStress", ".status.predictedPsuStressScore", "number"),
            Column("CPU-Cap", ".status.effectiveCapState.cpuPct", "number"),
            Column("Draining", ".spec.scheduling.draining", "boolean"),
        ),
    ),
    Definition(
        "NodeHardware",
        "nodehardwares",
        "nhw",
        is_namespaced=False,
        schema=NODE_HARDWARE,
        columns=(
            Column("Node", ".spec.nodeName"),
            Column("CPU", ".status.cpu.model"),
            Column("GPU", ".status.gpu.model"),
            Column("GPUCount", ".status.gpu.count", "integer"),
            Column("Quality", ".status.quality.overall"),
        ),
    ),
)


def definitions() -> Mapping[str, Any]:
    """Return the CustomResourceDefinitions as one List for ``kubectl apply``."""
    items = [definition.as_object() for definition in DEFINITIONS]
    return {"apiVersion": "v1", "kind": "List", "items": items}
