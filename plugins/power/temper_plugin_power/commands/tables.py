"""Profiles as tables."""

from collections.abc import Sequence

from temper_core.console import columns
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.views.profiles import ProfileRow
from temper_plugin_power.workloads.profiling import WorkloadProfile

CASE_HEADS = ("CASE", "CLASS", "SUMMARY", "REASON")
HEADS = ("NAMESPACE", "NAME", "CLASS", "CONFIDENCE", "CPU-BOUND", "GPU-BOUND", "REASON")


def cases_as_text(profiles: Sequence[PowerProfile]) -> str:
    """Return a table with a line for each profile, by its place in the list."""
    rows = [
        (str(place), profile.workload_class, profile.summary, profile.reason)
        for place, profile in enumerate(profiles)
    ]
    return "\n".join(columns(CASE_HEADS, rows))


def workloads_as_text(profiles: Sequence[WorkloadProfile | ProfileRow]) -> str:
    """Return a table with a line for each workload."""
    rows = [
        (
            each.workload.namespace,
            each.workload.object_name,
            each.profile.workload_class,
            f"{each.profile.confidence:.1f}",
            each.profile.cpu.bound or "-",
            each.profile.gpu.bound or "-",
            each.profile.reason,
        )
        for each in profiles
    ]
    return "\n".join(columns(HEADS, rows))
