"""What the plugin counts, for its metrics; every method may be called from any thread."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping

from temper_core import Metric, MetricFamily, MetricSample
from temper_kube.watch_status import WatchStatus
from temper_plugin_kubernetes.families import LISTS, NOT_READ, RESTARTS, WATCH_UP, WRITTEN


class Account:
    """Everything that is counted; one for the process."""

    def __init__(self) -> None:
        self.uids: Callable[[], Mapping[str, str]] = dict
        """Of pods whose cgroups are named by another uid than the API server's: that one's."""
        self._watches: dict[str, WatchStatus] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def watch_status(self, resource: str) -> WatchStatus:
        """Return a new status for the watch of *resource*, in place of the former."""
        made = self._watches[resource] = WatchStatus(resource)
        return made

    def count(self, metric: str, what: str, times: int = 1) -> None:
        """Count *what* in one of the families below."""
        with self._lock:
            self._counts[metric, what] += times

    def metrics(self) -> list[Metric]:
        """Return the families; those of a watch that does not run have no samples."""
        watches = list(self._watches.values())
        return [
            _by_resource(WATCH_UP, {each.resource: float(each.is_up) for each in watches}),
            _by_resource(RESTARTS, {each.resource: float(each.restarts) for each in watches}),
            _by_resource(LISTS, {each.resource: float(each.lists) for each in watches}),
            self._counted(WRITTEN),
            self._counted(NOT_READ),
        ]

    def _counted(self, family: MetricFamily) -> Metric:
        (label,) = family.labels
        with self._lock:
            found = {
                what: count
                for (metric, what), count in self._counts.items()
                if metric == family.name
            }
        return family.metric(
            [MetricSample(float(count), {label: what}) for what, count in sorted(found.items())]
        )


WRITES, UNREADABLE = WRITTEN.name, NOT_READ.name
"""What ``Account.count`` counts."""


def _by_resource(family: MetricFamily, values: Mapping[str, float]) -> Metric:
    return family.metric(
        [MetricSample(value, {"resource": name}) for name, value in sorted(values.items())]
    )
