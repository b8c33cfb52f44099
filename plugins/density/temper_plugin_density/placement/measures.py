"""The extender's own metrics at ``/metrics``."""

from collections.abc import Iterable, Iterator
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.scoring import Score
from temper_plugin_density.placement.watching import Watches

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
ANSWERED, REFUSED = "answered", "refused"


class Measures:
    """Counts and times of one server, in a registry of its own."""

    def __init__(self, ledger: Ledger, watches: Watches) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "temper_placement_requests",
            "Requests of the scheduler, by outcome",
            ["outcome"],
            registry=self._registry,
        )
        self.seconds = Histogram(
            "temper_placement_request_seconds",
            "Time of an answer in seconds",
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._scores = Counter(
            "temper_placement_scores",
            "Nodes scored, by the rule that decided",
            ["rule"],
            registry=self._registry,
        )
        for outcome in (ANSWERED, REFUSED):
            self.requests.labels(outcome)
        self._gauge("nodes", "Nodes known").set_function(lambda: len(ledger.nodes))
        self._gauge("pods", "Bound pods known").set_function(lambda: ledger.pods)
        self._add_watches(watches)
        self._registry.register(WatchCounts(watches))

    def count_scores(self, scores: Iterable[Score]) -> None:
        """Count scores by rule."""
        by_rule: dict[str, int] = {}
        for score in scores:
            by_rule[score.rule] = by_rule.get(score.rule, 0) + 1
        for rule, times in by_rule.items():
            self._scores.labels(rule).inc(times)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)

    def _add_watches(self, watches: Watches) -> None:
        up = self._gauge("watch_up", "Whether the watch is up", "resource")
        for status in (watches.nodes, watches.pods):
            up.labels(status.resource).set_function(partial(getattr, status, "is_up"))

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"temper_placement_{name}", help_text, labels, registry=self._registry)


class WatchCounts(Collector):
    """Metrics of the watches."""

    def __init__(self, watches: Watches) -> None:
        self._watches = watches

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the current counts."""
        yield CounterMetricFamily(
            "temper_placement_unreadable_pods",
            "Malformed Pod objects",
            self._watches.unreadable,
        )
        lists = CounterMetricFamily(
            "temper_placement_watch_lists",
            "How often the whole collection was listed",
            labels=["resource"],
        )
        for status in (self._watches.nodes, self._watches.pods):
            lists.add_metric([status.resource], status.lists)
        yield lists
