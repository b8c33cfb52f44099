"""The webhook's metrics at ``/metrics``."""

from attrs import field, frozen
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

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
            "temper_overcommit_admissions",
            "Admission requests of the API server, by outcome.",
            ["outcome"],
            registry=self.registry,
        )
        for outcome in Outcome:
            counter.labels(outcome=outcome)
        return counter

    @freed.default
    def _freed(self) -> Counter:
        return Counter(
            "temper_overcommit_freed_millicores",
            "Millicores by which the requests of admitted pods were lowered.",
            registry=self.registry,
        )

    @seconds.default
    def _seconds(self) -> Histogram:
        return Histogram(
            "temper_overcommit_admission_seconds",
            "Time of an admission decision, without reading the request.",
            buckets=SECONDS,
            registry=self.registry,
        )

    @certificate_expiry.default
    def _certificate_expiry(self) -> Gauge:
        return Gauge(
            "temper_overcommit_certificate_expiry_timestamp_seconds",
            "When the served certificate expires.",
            registry=self.registry,
        )

    @authority_expiry.default
    def _authority_expiry(self) -> Gauge:
        return Gauge(
            "temper_overcommit_authority_expiry_timestamp_seconds",
            "When the newest certificate authority expires.",
            registry=self.registry,
        )

    @certificates.default
    def _certificates(self) -> Counter:
        return Counter(
            "temper_overcommit_certificates_taken_up",
            "Certificates that were put into service, the first one included.",
            registry=self.registry,
        )

    @check_failures.default
    def _check_failures(self) -> Counter:
        return Counter(
            "temper_overcommit_certificate_check_failures",
            "Failed checks of the Secret and the configuration.",
            registry=self.registry,
        )

    def page(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
