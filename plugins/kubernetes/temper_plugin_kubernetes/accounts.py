"""What the plugin counts, for its metrics; every method may be called from any thread."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping

from temper_core import Metric, MetricSample, Staleness


class Lookout:
    """How one watch fares: whether it is up, since when it is not, and why.

    A watch that is up knows every change at once. ``reason`` is what failed last.
    """

    def __init__(self, resource: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.resource = resource
        self.has_answered = threading.Event()
        self.reason = "it has not been asked yet"
        self.is_up = False
        self.restarts = 0
        self.lists = 0
        self._clock = clock
        self._knew_at = clock()

    def listed(self) -> None:
        """Note that a list came: all is known as of now."""
        self.lists += 1
        self._knew_at = self._clock()
        self.has_answered.set()

    def rose(self) -> None:
        """Note that a watch has begun."""
        self.is_up = True

    def fell(self, reason: str) -> None:
        """Note that the watch ended."""
        if self.is_up:
            self._knew_at = self._clock()
            self.is_up = False
        self.restarts += 1
        self.reason = reason

    @property
    def age_s(self) -> float:
        """How many seconds ago all was known; 0 while the watch is up."""
        return 0.0 if self.is_up else self._clock() - self._knew_at

    def stale(self, after_s: float) -> Staleness | None:
        """Return why what is known may be old; None where that is not so, or not for long."""
        age_s = self.age_s
        return Staleness(age_s, self.reason) if age_s > after_s else None


class Account:
    """Everything that is counted; one for the process."""

    def __init__(self) -> None:
        self.uids: Callable[[], Mapping[str, str]] = dict
        """Of pods whose cgroups are named by another uid than the API server's: that one's."""
        self._lookouts: dict[str, Lookout] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def lookout(self, resource: str) -> Lookout:
        """Return a new lookout for *resource*, in place of the former."""
        made = self._lookouts[resource] = Lookout(resource)
        return made

    def count(self, metric: str, what: str, times: int = 1) -> None:
        """Count *what* in one of the families below."""
        with self._lock:
            self._counts[metric, what] += times

    def metrics(self) -> list[Metric]:
        """Return the families; those of a watch that does not run have no samples."""
        watches = list(self._lookouts.values())
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
