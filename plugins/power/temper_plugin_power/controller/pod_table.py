"""The pods of the cluster by workload, and which of them are in scope."""

import threading
from collections import defaultdict
from collections.abc import Callable, Container

from temper_plugin_power.controller.pods import KnownPod
from temper_plugin_power.workloads.owners import Workload

Pods = dict[str, KnownPod]


class PodTable:
    """Pods by workload, kept by ``noted``. Any thread may read it.

    *told* is called with each workload whose pods have changed in a way that its profile shows.
    """

    def __init__(self, told: Callable[[Workload], object] = lambda _: None) -> None:
        self._told = told
        self._by_workload: defaultdict[Workload, Pods] = defaultdict(dict)
        self._lock = threading.Lock()

    def noted(self, before: KnownPod | None, after: KnownPod | None) -> None:
        """Record a change of a pod."""
        with self._lock:
            if before is not None:
                self._remove(before)
            if after is not None:
                self._by_workload[after.workload][after.measured.pod.uid] = after
        if after is not None and (before is None or _is_news(before, after)):
            self._told(after.workload)

    def workloads(self) -> list[Workload]:
        """Return the workloads that have pods."""
        with self._lock:
            return list(self._by_workload)

    def of(self, workload: Workload) -> list[KnownPod]:
        """Return the pods of a workload."""
        with self._lock:
            return list(self._by_workload.get(workload, {}).values())

    def all(self) -> list[KnownPod]:
        """Return all pods."""
        with self._lock:
            return [pod for pods in self._by_workload.values() for pod in pods.values()]

    def _remove(self, pod: KnownPod) -> None:
        pods = self._by_workload.get(pod.workload)
        if pods is not None:
            pods.pop(pod.measured.pod.uid, None)
            if not pods:
                del self._by_workload[pod.workload]


def in_scope(pod: KnownPod, nodes: Container[str], skipped: Container[str]) -> bool:
    """Return whether a pod has a profile: it is on one of *nodes*, or has none yet.

    Namespaces that are *skipped* have none.
    """
    return pod.workload.namespace not in skipped and (not pod.node or pod.node in nodes)


def _is_news(before: KnownPod, after: KnownPod) -> bool:
    wanted = (each.measured.pod.wanted_profile for each in (before, after))
    return before.hints != after.hints or before.node != after.node or len(set(wanted)) > 1
