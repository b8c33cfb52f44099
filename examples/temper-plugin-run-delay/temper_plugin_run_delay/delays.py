"""The run delay in a snapshot: the time that threads were runnable without a CPU."""

from collections.abc import Mapping

from temper_core import Snapshot


def delays_of(snapshot: Snapshot) -> Mapping[str, float]:
    """Return the run delay of each pod, in CPUs, by the pod's key."""
    return {pod.key: pod.run_delay for pod in snapshot.pods}


def slow_pods(delays: Mapping[str, float], waiting: float) -> frozenset[str]:
    """Return the pods whose threads together wait for more than *waiting* CPUs."""
    return frozenset(pod for pod, delay in delays.items() if delay > waiting)
