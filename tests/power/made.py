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
