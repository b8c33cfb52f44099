"""The operator's own metrics at ``/metrics``."""

from collections import Counter as Counts
from collections.abc import Callable, Iterable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from temper_core import MetricFamily
from temper_kube.watch_status import WatchStatus
from temper_plugin_power.classifier.profiles import band
from temper_plugin_power.controller.classifier import RESULTS
from temper_plugin_power.controller.stored_profiles import StoredProfile
from temper_plugin_power.families import operator as families
from temper_plugin_power.resources.fields import text_at
from temper_plugin_power.workloads.energy import Dialect

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
BANDS = ("high", "medium", "low")


class Tallies:
    """Counts and times of one operator, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._classified = Counter(*_named(families.CLASSIFICATIONS), registry=self.registry)
        self._seconds = Histogram(
            *_named(families.QUERY_SECONDS), buckets=BUCKETS, registry=self.registry
        )
        self._failures = Counter(*_named(families.QUERY_FAILURES), registry=self.registry)
        self._dialect = self._gauge(families.DIALECT)
        self._profiles = self._gauge(families.PROFILES)
        self._unknown = self._gauge(families.BOUND_UNKNOWN)
        for result in RESULTS:
            self._classified.labels(result)
        self.dialect_is(Dialect.NONE)

    def classified(self, result: str) -> None:
        """Count a classification."""
        self._classified.labels(result).inc()

    def asked(self, signal: str, seconds: float, *, failed: bool) -> None:
        """Note a query of Prometheus."""
        self._seconds.labels(signal).observe(seconds)
        self._failures.labels(signal).inc(failed)

    def dialect_is(self, found: Dialect) -> None:
        """Note the dialect of the last cycle."""
        for dialect in Dialect:
            self._dialect.labels(str(dialect)).set(dialect is found)

    def add_leading(self, is_leading: Callable[[], bool]) -> None:
        """Show whether this replica leads."""
        self._gauge(families.LEADING).set_function(is_leading)

    def add_watches(self, statuses: Iterable[WatchStatus]) -> None:
        """Show which watches are up."""
        up = self._gauge(families.WATCH_UP)
        for status in statuses:
            up.labels(status.resource).set_function(partial(getattr, status, "is_up"))

    def page(self, profiles: Iterable[StoredProfile]) -> bytes:
        """Return all metrics in the text format, with the *profiles* counted as they are now."""
        known = list(profiles)
        counts = Counts(band(each.profile.confidence) for each in known)
        for name in BANDS:
            self._profiles.labels(name).set(counts[name])
        bounds = Counts(text_at(each.status, "evidence.energyBound") for each in known)
        self._unknown.set(bounds["unknown"])
        return generate_latest(self.registry)

    def _gauge(self, family: MetricFamily) -> Gauge:
        return Gauge(*_named(family), registry=self.registry)


def _named(family: MetricFamily) -> tuple[str, str, tuple[str, ...]]:
    return family.name, family.help, family.labels
