"""The metric of a certificate in two files."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from temper_core import MetricFamily
from temper_serving.certificate_files import CertificateFiles


class CertificateExpiry(Collector):
    """The time at which the served *certificate* expires, as *family*. No sample without one."""

    def __init__(self, family: MetricFamily, certificate: CertificateFiles | None) -> None:
        self._family, self._certificate = family, certificate

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the family."""
        gauge = GaugeMetricFamily(self._family.name, self._family.help, labels=())
        if self._certificate is not None:
            gauge.add_metric((), self._certificate.period.expiry)
        yield gauge
