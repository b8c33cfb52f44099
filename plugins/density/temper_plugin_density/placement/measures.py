"""The extender's own metrics at ``/metrics``."""

from collections.abc import Iterable, Iterator
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from temper_core import MetricFamily
from temper_plugin_density import families
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
            families.REQUESTS.name,
            families.REQUESTS.help,
            ["outcome"],
            registry=self._registry,
        )
        self.seconds = Histogram(
            families.REQUEST_SECONDS.name,
            families.REQUEST_SECONDS.help,
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._scores = Counter(
            families.SCORES.name,
            families.SCORES.help,
            ["rule"],
            registry=self._registry,
        )
        for outcome in (ANSWERED, REFUSED):
            self.requests.labels(outcome)
        self._gauge(families.NODES).set_function(lambda: len(ledger.nodes))
        self._gauge(families.PODS).set_function(lambda: ledger.pods)
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
        up = self._gauge(families.WATCH_UP)
        for status in (watches.nodes, watches.pods):
            up.labels(status.resource).set_function(partial(getattr, status, "is_up"))

    def _gauge(self, family: MetricFamily) -> Gauge:
        return Gauge(family.name, family.help, family.labels, registry=self._registry)


class WatchCounts(Collector):
    """Metrics of the watches."""

    def __init__(self, watches: Watches) -> None:
        self._watches = watches

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the current counts."""
        yield CounterMetricFamily(
            families.UNREADABLE.name,
            families.UNREADABLE.help,
            self._watches.unreadable,
        )
        lists = CounterMetricFamily(
            families.WATCH_LISTS.name,
            families.WATCH_LISTS.help,
            labels=["resource"],
        )
        for status in (self._watches.nodes, self._watches.pods):
            lists.add_metric([status.resource], status.lists)
        yield lists
