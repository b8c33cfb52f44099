"""One scrape of ``/metrics``: the core's families, then the plugins', within a bound."""

import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import structlog
from attrs import define, field, frozen
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Rendered
from prometheus_client.registry import Collector

from temper_core.errors import PluginError
from temper_core.records.contributions import Exporter, Metric
from temper_core.records.histogram import Histogram
from temper_core.records.snapshots import Snapshot
from temper_core.server.families import DROPPED, FAMILIES, Family, HistogramFamily, Reading
from temper_core.server.view import AgentView

UNBOUNDED_LABELS = frozenset({"tid", "tgid", "pid", "uid", "pod_uid"})
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Series:
    """One line of a scrape: a name, its labels in the order of the names, and the value."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


@frozen
class Group:
    """The series of one family; ``whole`` families are kept or dropped as one."""

    name: str
    kind: str
    help: str
    series: tuple[Series, ...]
    whole: bool = False


@define
class Scraper:
    """Renders scrapes of *view* that hold at most *series_limit* series each."""

    view: AgentView
    series_limit: int
    clock: Callable[[], float] = time.monotonic
    _dropped: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def scrape(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their media type, OpenMetrics where *accept* prefers it."""
        reading = self._reading()
        groups = [group_of(family, reading) for family in FAMILIES]
        groups += self._exported(taken={name for group in groups for name in names_of(group)})
        # One series is kept for the count of those that were dropped.
        kept, dropped = within(groups, self.series_limit - 1)
        with self._lock:
            self._dropped += dropped
            kept.append(group_with(DROPPED, [((), float(self._dropped))]))
        return _encode(kept, accept)

    def _reading(self) -> Reading:
        snapshot, generation = self.view.snapshot(), self.view.generation()
        planned = generation.plan if generation else None
        return Reading(
            snapshot,
            (snapshot.plan if snapshot else None) or planned,
            self.view.status(),
            self.view.counters(),
            tuple(state.name for state in self.view.plugins()),
            self.clock() - snapshot.monotonic_s if snapshot else None,
        )

    def _exported(self, taken: set[str]) -> Iterator[Group]:
        """Ask every exporter; a name that is taken costs the family, a failure its exporter."""
        snapshot = self.view.snapshot()
        if snapshot is None:
            return
        reserved = taken | _suffixed(DROPPED.name, DROPPED.kind)
        for plugin, exporter in self.view.exporters():
            for group in self._collected(plugin, exporter, snapshot):
                if reserved.isdisjoint(names_of(group)):
                    reserved |= names_of(group)
                    yield group
                else:
                    self._drop(len(group.series))
                    log.debug("metric_name_taken", plugin=plugin, metric=group.name)

    def _collected(self, plugin: str, exporter: Exporter, snapshot: Snapshot) -> Sequence[Group]:
        try:
            return self.view.call(plugin, collected, exporter, snapshot)
        except PluginError:
            # The host has counted it, and set the plugin aside by name.
            return ()

    def _drop(self, count: int) -> None:
        with self._lock:
            self._dropped += count


def group_of(family: Family | HistogramFamily, reading: Reading) -> Group:
    """Read one of the core's families."""
    if isinstance(family, HistogramFamily):
        (label,) = family.labels
        series = tuple(
            line
            for value, histogram in family.read(reading).items()
            for line in _buckets(family.name, (label, value), histogram)
        )
        return Group(family.name, family.kind, family.help, series, whole=True)
    return group_with(family, family.read(reading))


def group_with(family: Family, values: Iterable[tuple[tuple[str, ...], float]]) -> Group:
    """Make the series of a *family* out of label values and values."""
    series = tuple(
        Series(family.name, tuple(zip(family.labels, labels, strict=True)), value)
        for labels, value in values
    )
    return Group(family.name, family.kind, family.help, series)


def collected(exporter: Exporter, snapshot: Snapshot) -> tuple[Group, ...]:
    """Call an exporter and check all it returns; raises whatever is wrong with it."""
    return tuple(_checked(metric) for metric in exporter.collect(snapshot))


def _checked(metric: Metric) -> Group:
    if not isinstance(metric, Metric):
        raise TypeError(f"an exporter yields Metric records, not {metric!r}")
    name = metric.name
    if metric.kind == "counter" and not name.endswith("_total"):
        name += "_total"
    series = tuple(
        Series(name, _checked_labels(name, sample.labels.items()), float(sample.value))
        for sample in metric.samples
    )
    return Group(name, metric.kind, str(metric.help), series)


def _checked_labels(name: str, labels: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    checked = tuple(sorted((str(label), str(value)) for label, value in labels))
    for label, _ in checked:
        if not _LABEL.fullmatch(label) or label in UNBOUNDED_LABELS:
            raise ValueError(f"metric {name} must not have the label {label!r}")
    return checked


def _buckets(name: str, label: tuple[str, str], histogram: Histogram) -> Iterator[Series]:
    below = 0
    for bound, count in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        below += count
        limit = "+Inf" if bound == math.inf else str(bound)
        yield Series(f"{name}_bucket", (label, ("le", limit)), below)
    yield Series(f"{name}_count", (label,), below)
    yield Series(f"{name}_sum", (label,), histogram.total)


def names_of(group: Group) -> set[str]:
    """Return every name that a family takes for itself, in either format."""
    return _suffixed(group.name, group.kind)


def _suffixed(name: str, kind: str) -> set[str]:
    stem = name.removesuffix("_total") if kind == "counter" else name
    endings = {
        "counter": ("", "_total", "_created"),
        "histogram": ("", "_bucket", "_count", "_sum", "_created"),
    }
    return {stem + ending for ending in endings.get(kind, ("",))}


def within(groups: Iterable[Group], limit: int) -> tuple[list[Group], int]:
    """Keep the first *limit* series, each once; return them with the number of the others."""
    kept: list[Group] = []
    dropped, room = 0, limit
    for group in groups:
        firsts: dict[object, Series] = {}
        for series in group.series:
            firsts.setdefault((series.name, series.labels), series)
        unique = tuple(firsts.values())
        fitting = unique[:room]
        if group.whole and len(fitting) < len(unique):
            fitting = ()
        room -= len(fitting)
        dropped += len(group.series) - len(fitting)
        if fitting or not group.series:
            kept.append(Group(group.name, group.kind, group.help, fitting))
    return kept, dropped


class _Groups(Collector):
    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups

    def collect(self) -> Iterator[Rendered]:
        for group in self._groups:
            name = group.name.removesuffix("_total") if group.kind == "counter" else group.name
            rendered = Rendered(name, group.help, group.kind)
            for series in group.series:
                labels = {label: _encodable(value) for label, value in series.labels}
                rendered.add_sample(series.name, labels, series.value)
            yield rendered


def _encodable(text: str) -> str:
    """Replace the lone surrogates that stand for bytes which are not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _encode(groups: Sequence[Group], accept: str) -> tuple[bytes, str]:
    encoder, media_type = choose_encoder(accept)
    return encoder(_Groups(groups)), media_type
