"""The extender's own metrics at ``/metrics``."""

import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from temper_core import MetricFamily
from temper_plugin_power.classifier.hints import CLASSES
from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.rating import Moment, points_of, terms_of
from temper_plugin_power.families import extender as families
from temper_plugin_power.placing.demands import PodDemand
from temper_plugin_power.placing.rejecting import LABEL, REJECTING_CLASSES
from temper_plugin_power.placing.subjects import Choices, PodView
from temper_plugin_power.standing import Standing
from temper_serving.certificate_files import CertificateFiles
from temper_serving.certificate_metrics import CertificateExpiry

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
SOURCES = ("annotation", "profile", "default")
CAUSES = (*REJECTING_CLASSES, LABEL)
NO_DEMAND = PodDemand(0.0)


class Measures:
    """Counts and times of one server, in a registry of its own."""

    def __init__(
        self,
        cluster: Cluster,
        choices: Choices,
        clock: Callable[[], float],
        certificate: CertificateFiles | None = None,
    ) -> None:
        self._registry = CollectorRegistry()
        self.filters = self._counter(families.FILTER_REQUESTS, CLASSES)
        self.priorities = self._counter(families.PRIORITIZE_REQUESTS, CLASSES)
        self.filter_seconds = self._histogram(families.FILTER_SECONDS)
        self.prioritize_seconds = self._histogram(families.PRIORITIZE_SECONDS)
        self._sources = self._counter(families.CLASS_SOURCE, SOURCES)
        self._rejections = self._counter(families.REJECTIONS, CAUSES)
        self._registry.register(NodeScores(cluster, choices, clock))
        self._registry.register(CertificateExpiry(families.CERTIFICATE_EXPIRY, certificate))

    def count(self, requests: Counter, seconds: Histogram, pod: PodView, began: float) -> None:
        """Count an answer that began at *began*, by ``time.perf_counter``."""
        requests.labels(pod.standing.workload_class).inc()
        self._sources.labels(pod.standing.class_source).inc()
        seconds.observe(time.perf_counter() - began)

    def count_rejections(self, causes: Mapping[str, int]) -> None:
        """Count rejected nodes by cause."""
        for cause, times in causes.items():
            self._rejections.labels(cause).inc(times)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)

    def _counter(self, family: MetricFamily, values: tuple[str, ...]) -> Counter:
        counter = Counter(family.name, family.help, family.labels, registry=self._registry)
        for value in values:  # a series that begins with its first count would hide it
            counter.labels(value)
        return counter

    def _histogram(self, family: MetricFamily) -> Histogram:
        return Histogram(family.name, family.help, buckets=BUCKETS, registry=self._registry)


class NodeScores(Collector):
    """The scores of all nodes, computed when they are read."""

    def __init__(self, cluster: Cluster, choices: Choices, clock: Callable[[], float]) -> None:
        self._cluster, self._choices, self._clock = cluster, choices, clock

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the current values."""
        moment = Moment.of(self._clock(), self._choices)
        scores, stale = families.NODE_SCORE, families.STALE_TWINS
        gauge = GaugeMetricFamily(scores.name, scores.help, labels=scores.labels)
        names = tuple(self._cluster.places)
        for workload_class in CLASSES:
            pod = PodView(Standing(workload_class, "default"), NO_DEMAND)
            terms = terms_of(pod, self._cluster, self._choices, moment)
            points = points_of(names, self._cluster, terms, moment)
            for name, each in zip(names, points, strict=True):
                gauge.add_metric([name, workload_class], each)
        yield gauge
        count = sum(1 for _ in self._cluster.stale(moment.oldest, moment.newest))
        yield GaugeMetricFamily(stale.name, stale.help, count)
