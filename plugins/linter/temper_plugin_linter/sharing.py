"""``quota_unenforced`` and ``weight_unenforced``: cgroup settings that the kernel does not enforce.

While a sched_ext scheduler is attached the kernel enforces neither ``cpu.max`` nor ``cpu.weight``.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from temper_core import Finding, PodSample
from temper_plugin_linter.placement import Placement, pod_key

KERNELS_OWN_WEIGHT = 100
QUOTA_FIX = (
    "cpu.max has no effect on an enforcing node: lower the pod's priority so that its tier yields "
    "to others, set the limit to its actual use, or keep the pod on a node that only observes"
)
WEIGHT_FIX = (
    "all threads inside a layer are equal: give the pod a higher priority, so that its tier is "
    "served first, or raise its request, so that its tier owns more CPUs"
)


def quota_unenforced(placement: Placement) -> Iterator[Finding]:
    """Find pods that use more than their CFS quota while the engine runs."""
    if not placement.is_judged:
        return
    limits = placement.limits
    for pod in placement.snapshot.pods:
        quota = pod.quota_cores
        if quota is None:
            continue
        beyond = pod.cpu_used - quota
        if pod.cpu_used >= quota * limits.quota_ratio and beyond >= limits.idle_cpu:
            yield Finding(
                pod_key(pod),
                f"uses {pod.cpu_used:.2f} CPUs of a quota of {quota:.2f}: the kernel enforces no "
                f"CPU quota while the engine runs",
                QUOTA_FIX,
                {
                    "cpu_used": pod.cpu_used,
                    "quota_cores": quota,
                    "beyond": beyond,
                    "limit": limits.quota_ratio,
                },
            )


def weight_unenforced(placement: Placement) -> Iterator[Finding]:
    """Find pods that get less of a contended layer than their ``cpu.weight`` entitles them to.

    Only waiting pods of one layer are compared: a pod that does not wait lacks no CPU.
    """
    if not placement.is_judged:
        return
    rivals: defaultdict[str, list[PodSample]] = defaultdict(list)
    for pod in placement.snapshot.pods:
        if pod.run_delay >= placement.limits.contended_cpu:
            rivals[placement.facts.layer_by_pod.get(pod_key(pod), "")].append(pod)
    for layer, pods in rivals.items():
        if layer:
            yield from _short(layer, pods, placement)


def _short(layer: str, pods: Sequence[PodSample], placement: Placement) -> Iterator[Finding]:
    limits = placement.limits
    used = sum(pod.cpu_used for pod in pods)
    weights = sum(_weight(pod) for pod in pods)
    for pod in pods:
        share = min(used * _weight(pod) / weights, pod.cpu_used + pod.run_delay)
        lacking = share - pod.cpu_used
        is_short = lacking >= limits.weight_shortfall * share and lacking >= limits.idle_cpu
        if pod.weight is not None and is_short:
            yield Finding(
                pod_key(pod),
                f"gets {pod.cpu_used:.2f} CPUs where its weight of {pod.weight} among the "
                f"{len(pods)} waiting pods of layer {layer!r} entitles it to {share:.2f}",
                WEIGHT_FIX,
                {
                    "cpu_used": pod.cpu_used,
                    "entitled": share,
                    "weight": pod.weight,
                    "weights": weights,
                    "run_delay": pod.run_delay,
                    "layer": layer,
                },
            )


def _weight(pod: PodSample) -> int:
    return KERNELS_OWN_WEIGHT if pod.weight is None else pod.weight
