"""The plugin's counts for its metrics. Every method may be called from any thread."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping

from temper_core import Metric, MetricSample
from temper_kube.watch_status import WatchStatus


class Account:
    """All counts of the process."""

    def __init__(self) -> None:
        self.uids: Callable[[], Mapping[str, str]] = dict
        """API server uids by cgroup uid, for pods whose cgroups are named by another uid."""
        self._watches: dict[str, WatchStatus] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def watch_status(self, resource: str) -> WatchStatus:
        """Return a new status for the watch of *resource*. It replaces the former one."""
        status = self._watches[resource] = WatchStatus(resource)
        return status

    def count(self, metric: str, what: str, times: int = 1) -> None:
        """Count *what* in one of the families below."""
        with self._lock:
            self._counts[metric, what] += times

    def metrics(self) -> list[Metric]:
        """Return the families. A watch that does not run has no samples."""
        watches = list(self._watches.values())
        return [
            _by_resource(
                "temper_kubernetes_watch_up",
                "1 while the API server is watched, by `resource`: pods, node.",
                {status.resource: float(status.is_up) for status in watches},
            ),
            _by_resource(
                "temper_kubernetes_watch_restarts_total",
                "Times a watch ended, for any reason, by `resource`.",
                {status.resource: float(status.restarts) for status in watches},
                kind="counter",
            ),
            _by_resource(
                "temper_kubernetes_lists_total",
                "Times everything was listed anew, by `resource`.",
                {status.resource: float(status.lists) for status in watches},
                kind="counter",
            ),
            self._counted(
                WRITES, "Writes to the API server, and those that failed, by `write`.", "write"
            ),
            self._counted(UNREADABLE, "Objects that could not be read, by `resource`.", "resource"),
        ]

    def _counted(self, name: str, help_text: str, label: str) -> Metric:
        with self._lock:
            counts = {what: n for (metric, what), n in self._counts.items() if metric == name}
        samples = [MetricSample(float(n), {label: what}) for what, n in sorted(counts.items())]
        return Metric(name, help_text, samples, kind="counter")


WRITES = "temper_kubernetes_writes_total"
UNREADABLE = "temper_kubernetes_unreadable_objects_total"


def _by_resource(
    name: str, help_text: str, values: Mapping[str, float], *, kind: str = "gauge"
) -> Metric:
    samples = [
        MetricSample(value, {"resource": resource}) for resource, value in sorted(values.items())
    ]
    return Metric(name, help_text, samples, kind=kind)
