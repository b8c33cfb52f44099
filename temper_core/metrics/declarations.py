"""Defects of the metrics that plugins export: undeclared families, and names that are taken."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import structlog
from attrs import evolve

from temper_core.metrics.exposition import COUNTER, TOTAL
from temper_core.records.contributions import Exporter, Metric
from temper_core.records.declarations import MetricFamily
from temper_core.records.snapshots import Snapshot

MOST_DEFECTS = 8
"""Limit per plugin, since the plugin chooses the names in its defects."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Declarations:
    """Reports metrics that a plugin exports and has not declared, or whose name another one has.

    A plugin that declares nothing is exempt from the first. Any thread may call every method.
    """

    def __init__(self, declared: Iterable[tuple[str, MetricFamily]] = ()) -> None:
        self._families: defaultdict[str, dict[str, MetricFamily]] = defaultdict(dict)
        self._defects: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for plugin, family in declared:
            self._families[plugin][family.name] = family

    @property
    def defects(self) -> tuple[str, ...]:
        """The families exported so far with a defect, one line each."""
        return tuple(
            line for lines in list(self._defects.values()) for line in list(lines.values())
        )

    def held(self, plugin: str, exporter: Exporter) -> Exporter:
        """Return *exporter* with its metrics checked against the declarations of *plugin*."""
        if plugin not in self._families:
            return exporter
        return evolve(exporter, collect=partial(self._collect, plugin, exporter.collect))

    def note_taken(self, plugin: str, metric: str, owner: str) -> None:
        """Record that *metric* of *plugin* is dropped: plugin *owner* exports it, or the core."""
        by = f"plugin {owner}" if owner else "the core"
        problem = f"is dropped: {by} exports a family of this name"
        self._note(plugin, metric, problem, event="metric_name_taken")

    def _collect(
        self, plugin: str, collect: Callable[[Snapshot], Iterable[Any]], snapshot: Snapshot
    ) -> Iterator[Any]:
        for metric in collect(snapshot):
            if not isinstance(metric, Metric):  # the scrape rejects it
                yield metric
                continue
            collected = evolve(metric, samples=tuple(metric.samples))
            if problem := self._problem(plugin, collected):
                self._note(plugin, collected.name, problem)
            yield collected

    def _problem(self, plugin: str, metric: Metric) -> str:
        family = self._families[plugin].get(_exported_name(metric))
        if family is None:
            return "is not declared by temper_metrics"
        if metric.kind != family.kind:
            return f"is a {metric.kind}, but declared as a {family.kind}"
        labels = {label for sample in metric.samples for label in sample.labels}
        unknown = sorted(map(str, labels - set(family.labels)))
        return f"has labels that are not declared: {', '.join(unknown)}" if unknown else ""

    def _note(
        self, plugin: str, name: str, problem: str, event: str = "metric_not_as_declared"
    ) -> None:
        lines, key = self._defects[plugin], f"{event} {name}"
        if key in lines or len(lines) >= MOST_DEFECTS:
            return
        lines[key] = f"plugin {plugin}: its metric {name} {problem}"
        log.warning(event, plugin=plugin, metric=name, reason=problem)


def _exported_name(metric: Metric) -> str:
    is_bare = metric.kind == COUNTER and not metric.name.endswith(TOTAL)
    return f"{metric.name}{TOTAL}" if is_bare else metric.name
