"""The fleet server's own metrics at ``/metrics``."""

import re
import time
from collections import Counter as Counts
from collections.abc import Callable, Iterator
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from temper_core import MetricFamily, __version__
from temper_plugin_dashboard.fleet import families
from temper_plugin_dashboard.fleet.survey import State, Survey
from temper_serving.certificate_files import CertificateFiles
from temper_serving.certificate_metrics import CertificateExpiry

BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
NO_ANSWER = "none"
"""The status of a request whose connection ended before its answer."""


DONE = "done"


class Cause(StrEnum):
    """Why an agent did not do what it was asked for."""

    REFUSED = "refused"
    NO_ANSWER = "no_answer"


KINDS = {
    "file": r"/(?:node/[^/]+/)?dashboard/files/.*",
    "page": r"/|/node/[^/]+/?",
    "session": r"/log(?:in|out)",
    "pod": r"/fleet/pod/.*",
    "fleet": r"/fleet/.*",
    "node": r"/node/[^/]+/.+",
    "probe": r"/healthz|/readyz|/metrics",
}
"""The paths of each kind of request. The first that fits counts."""
OTHER = "other"
_KINDS = {kind: re.compile(pattern, re.DOTALL) for kind, pattern in KINDS.items()}


class Measures:
    """Counts and times of one server, in a registry of its own.

    *streams* returns the number of open streams.
    """

    def __init__(
        self, survey: Survey, streams: Callable[[], int], clock: Callable[[], float] = time.time
    ) -> None:
        self._registry = CollectorRegistry()
        self._requests = _counter(families.REQUESTS, self._registry)
        self._failures = _counter(families.FORWARDING_FAILURES, self._registry)
        seconds = families.REQUEST_SECONDS
        self._seconds = Histogram(
            seconds.name, seconds.help, seconds.labels, buckets=BUCKETS, registry=self._registry
        )
        self._actions = _counter(families.ACTIONS, self._registry)
        for cause in Cause:  # a series that begins with its first count would hide it
            self._failures.labels(cause)
        for outcome in (DONE, *Cause):
            self._actions.labels(outcome)
        self._registry.register(SurveyState(survey, streams, clock))

    def count(self, path: str, status: int | None, took_s: float) -> None:
        """Count a request for *path*, with None for the status if there was no answer."""
        kind = kind_of(path)
        self._requests.labels(kind, NO_ANSWER if status is None else f"{status // 100}xx").inc()
        self._seconds.labels(kind).observe(took_s)

    def count_failure(self, cause: Cause) -> None:
        """Count a request of a node's page that its agent did not answer."""
        self._failures.labels(cause).inc()

    def count_action(self, outcome: str) -> None:
        """Count an agent that was asked to act, by ``DONE`` or a ``Cause``."""
        self._actions.labels(outcome).inc()

    def tell_expiry(self, certificate: CertificateFiles | None) -> None:
        """Tell when *certificate* expires."""
        self._registry.register(CertificateExpiry(families.CERTIFICATE_EXPIRY, certificate))

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)


class Measured:
    """An ASGI application in front of another. It counts the requests to it."""

    def __init__(self, app: ASGIApp, measures: Measures) -> None:
        self._app = app
        self._measures = measures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, is_counted = time.perf_counter(), False

        def count(status: int | None) -> None:
            nonlocal is_counted
            if not is_counted:
                self._measures.count(scope["path"], status, time.perf_counter() - began)
                is_counted = True

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                count(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            count(None)


class SurveyState(Collector):
    """The survey's knowledge at the moment of a reading."""

    def __init__(
        self, survey: Survey, streams: Callable[[], int], clock: Callable[[], float]
    ) -> None:
        self._survey, self._streams, self._clock = survey, streams, clock

    def collect(self) -> Iterator[Metric]:
        """Yield the current values."""
        survey = self._survey
        build = _gauge(families.BUILD)
        build.add_metric([__version__], 1)
        yield build
        yield self._nodes()
        yield self._ages()
        for family, count in (
            (families.ROUNDS, survey.rounds),
            (families.FAILED_ROUNDS, survey.failed_rounds),
        ):
            yield CounterMetricFamily(family.name, family.help, count)
        yield GaugeMetricFamily(families.STREAMS.name, families.STREAMS.help, self._streams())

    def _nodes(self) -> Metric:
        gauge = _gauge(families.NODES)
        if self._survey.rounds:
            counts = Counts(each.state for each in self._survey.nodes.values())
            for state in State:
                gauge.add_metric([state], counts[state])
        return gauge

    def _ages(self) -> Metric:
        gauge, now = _gauge(families.ANSWER_AGE), self._clock()
        for node, state in self._survey.nodes.items():
            if state.answered_at is not None:
                gauge.add_metric([node], max(0.0, now - state.answered_at))
        return gauge


def kind_of(path: str) -> str:
    """Return the kind of a request by its path. Requests for more paths add no kinds."""
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(path)), OTHER)


def _counter(family: MetricFamily, registry: CollectorRegistry) -> Counter:
    return Counter(family.name, family.help, family.labels, registry=registry)


def _gauge(family: MetricFamily) -> GaugeMetricFamily:
    return GaugeMetricFamily(family.name, family.help, labels=family.labels)
