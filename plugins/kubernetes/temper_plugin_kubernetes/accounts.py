"""What the plugin counts, for its metrics. Every method may be called from any thread."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping

from temper_core import Metric, MetricSample
from temper_kube.watch_status import WatchStatus


class Account:
    """Everything that is counted. One for the process."""

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
        """Return the families. Those of a watch that does not run have no samples."""
        watches = list(self._watches.values())
        return [
            _by_resource(
                "temper_kubernetes_watch_up",
                "1 while the API server is watched, by `resource`: pods, node.",
                {each.resource: float(each.is_up) for each in watches},
            ),
            _by_resource(
                "temper_kubernetes_watch_restarts_total",
                "Times a watch ended, for whatever reason, by `resource`.",
                {each.resource: float(each.restarts) for each in watches},
                kind="counter",
            ),
            _by_resource(
                "temper_kubernetes_lists_total",
                "Times everything was listed anew, by `resource`.",
                {each.resource: float(each.lists) for each in watches},
                kind="counter",
            ),
            self._counted(
                WRITES, "Writes to the API server, and those that failed, by `write`.", "write"
            ),
            self._counted(UNREADABLE, "Objects that could not be read, by `resource`.", "resource"),
        ]

    def _counted(self, name: str, said: str, label: str) -> Metric:
        with self._lock:
            found = {what: n for (metric, what), n in self._counts.items() if metric == name}
        samples = [MetricSample(float(n), {label: what}) for what, n in sorted(found.items())]
        return Metric(name, said, samples, kind="counter")


WRITES = "temper_kubernetes_writes_total"
UNREADABLE = "temper_kubernetes_unreadable_objects_total"


def _by_resource(
    name: str, said: str, values: Mapping[str, float], *, kind: str = "gauge"
) -> Metric:
    samples = [MetricSample(value, {"resource": each}) for each, value in sorted(values.items())]
    return Metric(name, said, samples, kind=kind)
