"""The webhook's metrics at ``/metrics``."""

from attrs import field, frozen
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from temper_plugin_density import families
from temper_plugin_density.overcommit.outcomes import Outcome

SECONDS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1.0, 2.0)


@frozen
class Tallies:
    """The webhook's own metrics. Every outcome starts with a sample of 0."""

    registry: CollectorRegistry = field(factory=CollectorRegistry)
    admissions: Counter = field(init=False)
    freed: Counter = field(init=False)
    seconds: Histogram = field(init=False)
    certificate_expiry: Gauge = field(init=False)
    authority_expiry: Gauge = field(init=False)
    certificates: Counter = field(init=False)
    check_failures: Counter = field(init=False)

    @admissions.default
    def _admissions(self) -> Counter:
        counter = Counter(
            families.ADMISSIONS.name,
            families.ADMISSIONS.help,
            ["outcome"],
            registry=self.registry,
        )
        for outcome in Outcome:
            counter.labels(outcome=outcome)
        return counter

    @freed.default
    def _freed(self) -> Counter:
        return Counter(
            families.FREED.name,
            families.FREED.help,
            registry=self.registry,
        )

    @seconds.default
    def _seconds(self) -> Histogram:
        return Histogram(
            families.ADMISSION_SECONDS.name,
            families.ADMISSION_SECONDS.help,
            buckets=SECONDS,
            registry=self.registry,
        )

    @certificate_expiry.default
    def _certificate_expiry(self) -> Gauge:
        return Gauge(
            families.CERTIFICATE_EXPIRY.name,
            families.CERTIFICATE_EXPIRY.help,
            registry=self.registry,
        )

    @authority_expiry.default
    def _authority_expiry(self) -> Gauge:
        return Gauge(
            families.AUTHORITY_EXPIRY.name,
            families.AUTHORITY_EXPIRY.help,
            registry=self.registry,
        )

    @certificates.default
    def _certificates(self) -> Counter:
        return Counter(
            families.CERTIFICATES.name,
            families.CERTIFICATES.help,
            registry=self.registry,
        )

    @check_failures.default
    def _check_failures(self) -> Counter:
        return Counter(
            families.CHECK_FAILURES.name,
            families.CHECK_FAILURES.help,
            registry=self.registry,
        )

    def page(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
