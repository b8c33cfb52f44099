"""What a scrape says, as Prometheus reads it, and plugins whose metrics are in it."""

from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from temper_core.metrics.scraper import Scraper
from temper_core.records.contributions import Exporter, Metric, MetricSample

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def scrape(view, accept="", limit=5_000):
    """Return the samples' values by their names and labels."""
    text, _ = Scraper(view, limit).scrape(accept)
    parse = parse_openmetrics if accept == OPENMETRICS else parse_text
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parse(text.decode())
        for sample in family.samples
    }


def exporter(*metrics):
    return ("linter", Exporter("mine", lambda _: metrics))


def gauge(name, *values):
    samples = [MetricSample(value, {"n": str(n)}) for n, value in enumerate(values)]
    return Metric(name, "Help.", samples)
