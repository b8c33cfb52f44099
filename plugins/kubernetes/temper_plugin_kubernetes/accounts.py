"""The plugin's counts for its metrics. Every method may be called from any thread."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping

from temper_core import Metric, MetricFamily, MetricSample
from temper_kube.watch_status import WatchStatus
from temper_plugin_kubernetes.families import LISTS, NOT_READ, RESTARTS, WATCH_UP, WRITTEN


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
            _by_resource(WATCH_UP, {watch.resource: float(watch.is_up) for watch in watches}),
            _by_resource(RESTARTS, {watch.resource: float(watch.restarts) for watch in watches}),
            _by_resource(LISTS, {watch.resource: float(watch.lists) for watch in watches}),
            self._counted(WRITTEN),
            self._counted(NOT_READ),
        ]

    def _counted(self, family: MetricFamily) -> Metric:
        (label,) = family.labels
        with self._lock:
            counts = {
                what: count
                for (metric, what), count in self._counts.items()
                if metric == family.name
            }
        return family.metric(
            [MetricSample(float(count), {label: what}) for what, count in sorted(counts.items())]
        )


WRITES, UNREADABLE = WRITTEN.name, NOT_READ.name
"""The counters of ``Account.count``."""


def _by_resource(family: MetricFamily, values: Mapping[str, float]) -> Metric:
    return family.metric(
        [MetricSample(value, {"resource": name}) for name, value in sorted(values.items())]
    )
