"""The exported metric families of the agent, its plugins, and the services."""

from collections.abc import Iterator, Mapping
from functools import cache

from attrs import frozen

from temper_core import MetricFamily
from temper_core.metrics.families import FAMILIES
from temper_core.plugin_host.first_party import first_party_host

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


@cache
def declared() -> Mapping[str, tuple[MetricFamily, ...]]:
    """Return the families that each installed first-party plugin declares, by plugin."""
    found: dict[str, list[MetricFamily]] = {}
    for contribution in first_party_host().gather("temper_metrics", MetricFamily):
        found.setdefault(contribution.plugin, []).append(contribution.record)
    return {plugin: tuple(families) for plugin, families in sorted(found.items())}


def _all() -> Iterator[Known]:
    for family in FAMILIES:
        yield Known(family.name, family.kind, family.labels, family.help, family.unit)
    for families in declared().values():
        for each in families:
            yield Known(each.name, each.kind, each.labels, each.help)
