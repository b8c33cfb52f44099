"""Profiles that tests make."""

from temper_plugin_power.classifier.demands import Demand
from temper_plugin_power.classifier.profiles import PowerProfile

USUAL = {
    "cpu": "medium",
    "gpu": "none",
    "cpu_sensitivity": "medium",
    "gpu_sensitivity": "none",
    "reschedulable": False,
    "confidence": 0.7,
    "hints": (),
}


def a_profile(workload_class="standard", **changes):
    """Return a profile. ``cpu`` and ``gpu`` are intensities."""
    made = {**USUAL, **changes}
    return PowerProfile(
        workload_class,
        made["reschedulable"],
        Demand(made["cpu"], "mixed", made["cpu_sensitivity"]),
        Demand(made["gpu"], "mixed", made["gpu_sensitivity"]),
        "made",
        made["confidence"],
        made["hints"],
    )


def term(*names, key="metadata.name", operator="In"):
    """Return a term of a node affinity about the names of nodes."""
    return {"matchFields": [{"key": key, "operator": operator, "values": list(names)}]}


def affinity(terms):
    """Return the spec of a pod that requires one of *terms* of its node."""
    required = {"nodeSelectorTerms": terms}
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"affinity": {"nodeAffinity": node_affinity}}


def naming(node):
    """Return the spec of a pod of a DaemonSet, as its controller writes it for *node*."""
    return affinity([term(node)])
