"""The power of each tier, estimated from its share of CPU time."""

from collections.abc import Mapping

from temper_core import Snapshot, Tier

OUTSIDE = "outside-pods"
"""Threads that belong to no pod: the kernel, the kubelet, the runtime, this agent."""


def tier_watts(watts: float, snapshot: Snapshot) -> Mapping[str, float]:
    """Return *watts* divided by the CPU time of the window. The parts add up to *watts*.

    It is a share and no measurement: idle power, frequency and the kind of instructions are not
    considered. If nothing ran all of it is outside of pods.
    """
    used = dict.fromkeys((*(tier.value for tier in Tier), OUTSIDE), 0.0)
    for pod in snapshot.pods:
        used[pod.tier.value] += max(0.0, pod.cpu_used)
    for thread in snapshot.threads:
        if not thread.pod:
            used[OUTSIDE] += max(0.0, thread.cpu_used)
    total = sum(used.values())
    if not total:
        return {**used, OUTSIDE: watts}
    return {name: watts * cpus / total for name, cpus in used.items()}
