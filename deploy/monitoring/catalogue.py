"""The exported metric families of the agent, its plugins, and the services."""

from collections.abc import Iterator, Mapping
from functools import cache

from attrs import frozen
from prometheus_client.parser import text_string_to_metric_families

from temper_core import Metric
from temper_core.metrics.families import FAMILIES
from temper_core.testing import make_snapshot
from temper_plugin_density.overcommit.tallies import Tallies
from temper_plugin_density.placement.asking import PodReader
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.measures import Measures
from temper_plugin_density.placement.scoring import Score
from temper_plugin_density.placement.watching import Watches
from temper_plugin_kubernetes.accounts import UNREADABLE, WRITES, Account
from temper_plugin_linter.standing import ages

HISTOGRAM = "histogram"
SUFFIXES = ("_bucket", "_sum", "_count")
"""Suffixes of a histogram's series."""
OF_THE_TARGET = frozenset({"cluster", "instance", "node", "job"})
"""Labels that Prometheus adds to all series, as the chart and its page configure it."""


@frozen
class Known:
    """An exported metric family. ``unit`` is a base unit, empty for a plain number."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str
    unit: str = ""


@cache
def catalogue() -> Mapping[str, Known]:
    """Return every family by name."""
    return {known.name: known for known in _all()}


def family_of(series: str) -> Known | None:
    """Return the family that a series' name belongs to. A histogram has several."""
    known = catalogue()
    for suffix in SUFFIXES:
        whole = known.get(series.removesuffix(suffix))
        if series.endswith(suffix) and whole is not None and whole.kind == HISTOGRAM:
            return whole
    family = known.get(series)
    return None if family is None or family.kind == HISTOGRAM else family


def _all() -> Iterator[Known]:
    yield from _of_the_core()
    yield from _of_plugins()
    for page in pages_of_services():
        yield from _of_a_service(page)


def pages_of_services() -> tuple[bytes, ...]:
    """Return the metrics of the webhook and the placement service before any request."""
    return Tallies().page(), _placement()


def _of_the_core() -> Iterator[Known]:
    for family in FAMILIES:
        yield Known(family.name, family.kind, family.labels, family.help, family.unit)


def _of_plugins() -> Iterator[Known]:
    account = Account()
    account.watch_status("pods")
    for family in (WRITES, UNREADABLE):
        account.count(family, "any")
    for metric in (*account.metrics(), *ages(make_snapshot(invariants=("any",)))):
        yield _contributed(metric)


def _contributed(metric: Metric) -> Known:
    labels = dict.fromkeys(name for sample in metric.samples for name in sample.labels)
    return Known(metric.name, metric.kind, tuple(labels), metric.help)


def _placement() -> bytes:
    ledger = Ledger()
    measures = Measures(ledger, Watches(ledger, PodReader(None)))
    measures.count_scores([Score("any", 0.0, "any")])
    return measures.text()


def _of_a_service(page: bytes) -> Iterator[Known]:
    for metric in text_string_to_metric_families(page.decode()):
        if metric.name.endswith("_created"):  # added by prometheus_client; the services disable it
            continue
        labels = dict.fromkeys(name for sample in metric.samples for name in sample.labels)
        kept = tuple(label for label in labels if label != "le")
        total = "_total" if metric.type == "counter" else ""
        name = f"{metric.name.removesuffix(total)}{total}"
        yield Known(name, metric.type, kept, metric.documentation)
