"""One scrape of ``/metrics``: the core's families, then the plugins', within a bound.

Series over the bound are dropped in this order: plugins' metrics, threads by name, pods (the
least busy first), and last the families of the node.
"""

import re
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from attrs import define, field, frozen

from temper_core.errors import PluginError
from temper_core.metrics.exposition import (
    COUNTER,
    HISTOGRAM,
    TOTAL,
    Block,
    FamilyHeader,
    block,
    count_of,
    histogram_lines,
    names_of,
    text_of,
    within,
)
from temper_core.metrics.families import (
    DROPPED,
    FAMILIES,
    LIVE,
    OBSERVED,
    PODS,
    SERIES,
    THREADS,
)
from temper_core.metrics.families.reading import OfPods, PodReading, Reading, own_line
from temper_core.metrics.label_text import escaped, readable
from temper_core.metrics.media_types import OPENMETRICS, media_type_for
from temper_core.metrics.source import MetricSource
from temper_core.metrics.totals import Sums, merged_pods
from temper_core.plugin_host.shared_time import SharedTime
from temper_core.records.contributions import Exporter, Metric, MetricSample
from temper_core.records.histogram import Histogram
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import Snapshot

UNBOUNDED_LABELS = frozenset({"tid", "tgid", "pid", "uid", "pod_uid"})
OWN_SERIES = 2
"""The series count and the count of dropped series, which every scrape has."""
LONGEST_TEXT = 4096
"""Characters of a help text or of a label's value of a plugin."""
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_RESERVED = frozenset(name for family in FAMILIES for name in names_of(family.head))


@define
class Page:
    """The text of one observation, within *room* series. All scrapers share one page."""

    basis: tuple[Snapshot | None, LayerPlan | None, Sums]
    room: int
    blocks: Sequence[Block]
    dropped: int
    series: int
    _texts: dict[bool, bytes] = field(factory=dict, init=False)

    def is_of(self, reading: Reading, room: int) -> bool:
        """Whether the page still represents *reading*."""
        same = (reading.snapshot, reading.plan, reading.sums)
        return room == self.room and all(
            old is new for old, new in zip(self.basis, same, strict=True)
        )

    def text(self, *, openmetrics: bool) -> bytes:
        """Write the page in one of the two formats."""
        if openmetrics not in self._texts:
            self._texts[openmetrics] = text_of(self.blocks, openmetrics=openmetrics)
        return self._texts[openmetrics]


@frozen
class SeriesBudget:
    """The blocks that fit, and the number of series that were dropped."""

    blocks: list[Block]
    dropped: int


@define
class Scraper:
    """Renders scrapes of *view* that hold at most *series_limit* series each."""

    view: MetricSource
    series_limit: int
    clock: Callable[[], float] = time.monotonic
    _dropped: int = field(default=0, init=False)
    _page: Page | None = field(default=None, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def scrape(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their media type, OpenMetrics where *accept* prefers it."""
        media_type = media_type_for(accept)
        openmetrics = media_type == OPENMETRICS
        reading = self._reading()
        room = self.series_limit - OWN_SERIES
        live, lost = within((family.block(reading) for family in LIVE), room)
        page = self._page_of(reading, room - count_of(live))
        lost += page.dropped
        exported, refused = within(
            self._exported(reading.snapshot), 0 if lost else page.room - page.series
        )
        series = count_of(live) + page.series + count_of(exported) + OWN_SERIES
        own = self._own(series, lost + refused)
        self.view.note_series(series)
        parts = (
            text_of(live, openmetrics=openmetrics),
            page.text(openmetrics=openmetrics),
            text_of((*exported, *own), openmetrics=openmetrics),
            b"# EOF\n" if openmetrics else b"",
        )
        return b"".join(parts), media_type

    def _reading(self) -> Reading:
        snapshot, generation = self.view.snapshot(), self.view.generation()
        planned = generation.plan if generation else None
        return Reading(
            snapshot,
            (snapshot.plan if snapshot else None) or planned,
            self.view.status(),
            self.view.counters(),
            self.view.plugins(),
            self.clock() - snapshot.monotonic_s if snapshot else None,
            self.view.sums(),
            self.view.pods_age_s(),
        )

    def _page_of(self, reading: Reading, room: int) -> Page:
        with self._lock:
            if self._page is None or not self._page.is_of(reading, room):
                self._page = page_of(reading, room)
            return self._page

    def _own(self, series: int, dropped: int) -> tuple[Block, Block]:
        with self._lock:
            self._dropped += dropped
            return own_line(SERIES.head, series), own_line(DROPPED.head, self._dropped)

    def _exported(self, snapshot: Snapshot | None) -> Iterator[Block]:
        """Call every exporter. A taken name drops the family, a failure drops the exporter."""
        if snapshot is None:
            return
        owners = dict.fromkeys(_RESERVED, "")
        scrape_time = self.view.time_of_a_scrape()
        for plugin, exporter in self.view.exporters():
            for family in _collected_in(scrape_time, plugin, exporter, snapshot):
                names = names_of(family.head)
                taken = sorted(names & owners.keys())
                if not taken:
                    owners |= dict.fromkeys(names, plugin)
                    yield family
                else:
                    self._drop(len(family.lines) + family.repeated)
                    self.view.note_taken(plugin, family.head.name, owners[taken[0]])

    def _drop(self, count: int) -> None:
        with self._lock:
            self._dropped += count


def page_of(reading: Reading, room: int) -> Page:
    """Make the page of an observation. After the first drop, all less important series go too."""
    blocks, dropped = within((family.block(reading) for family in OBSERVED), room)
    series = count_of(blocks)
    pods = _pods(reading)
    for families in (PODS, THREADS):
        fitting = pod_blocks(families, pods, 0 if dropped else room - series)
        blocks += fitting.blocks
        dropped += fitting.dropped
        series += count_of(fitting.blocks)
    return Page((reading.snapshot, reading.plan, reading.sums), room, blocks, dropped, series)


def _pods(reading: Reading) -> list[PodReading]:
    """Return the pods, busiest first."""
    if reading.snapshot is None:
        return []
    merged = merged_pods(reading.snapshot.pods)
    pods = [PodReading.of(key, sample, reading.sums) for key, sample in merged.items()]
    return sorted(pods, key=lambda pod: (-pod.totals.busyness, pod.labels))


def pod_blocks(families: Sequence[OfPods], pods: Sequence[PodReading], room: int) -> SeriesBudget:
    """Write *families* for as many of *pods* as fit. Each pod is written whole or not at all."""
    dropped = 0
    if len(pods) * sum(family.most for family in families) > room:
        pods, dropped = _fitting(families, pods, room)
    return SeriesBudget([Block(family.head, family.lines(pods)) for family in families], dropped)


def _fitting(
    families: Sequence[OfPods], pods: Sequence[PodReading], room: int
) -> tuple[Sequence[PodReading], int]:
    """Return as many of the first *pods* as fit, and the number of series of the other pods."""
    counts = [sum(len(family.lines((pod,))) for family in families) for pod in pods]
    so_far = list(accumulate(counts))
    fitting = bisect_right(so_far, room)
    return pods[:fitting], sum(counts[fitting:])


def _collected_in(
    scrape_time: SharedTime, plugin: str, exporter: Exporter, snapshot: Snapshot
) -> Sequence[Block]:
    try:
        part = f"exporter {exporter.name}"
        return scrape_time.call(plugin, collected, exporter, snapshot, part=part)
    except PluginError:
        # The plugin host counts the failure and sets the exporter aside by name.
        return ()


def collected(exporter: Exporter, snapshot: Snapshot) -> tuple[Block, ...]:
    """Call an exporter and check its metrics. Raises its error, or TypeError or ValueError."""
    return tuple(_checked(metric) for metric in exporter.collect(snapshot))


def _checked(metric: Metric) -> Block:
    if not isinstance(metric, Metric):
        raise TypeError(f"an exporter yields Metric records, not {metric!r}")
    name = metric.name
    if metric.kind == COUNTER and not name.endswith(TOTAL):
        name += TOTAL
    help_text = " ".join(str(metric.help)[:LONGEST_TEXT].split())
    head = FamilyHeader(name, readable(help_text), metric.kind)
    if metric.kind == HISTOGRAM:
        return _histogram_block(head, metric)
    samples = [
        (_checked_labels(name, sample.labels.items()), _number_of(metric, sample))
        for sample in metric.samples
    ]
    return block(head, samples)


def _number_of(metric: Metric, sample: MetricSample) -> float:
    if isinstance(sample.value, Histogram):
        raise TypeError(f"metric {metric.name} is a {metric.kind}, but its value is a Histogram")
    return float(sample.value)


def _histogram_block(head: FamilyHeader, metric: Metric) -> Block:
    lines: list[str] = []
    for sample in metric.samples:
        if not isinstance(sample.value, Histogram):
            raise TypeError(f"metric {head.name} is a histogram, but its value is no Histogram")
        labels = _checked_labels(head.name, sample.labels.items())
        lines += histogram_lines(head.name, labels, sample.value)
    return Block(head, tuple(lines), whole=True)


def _checked_labels(name: str, labels: Iterable[tuple[str, str]]) -> str:
    checked = sorted((str(label), str(value)) for label, value in labels)
    for label, value in checked:
        if len(value) > LONGEST_TEXT:
            raise ValueError(f"metric {name} has a label {label!r} of {len(value)} characters")
        if not _LABEL.fullmatch(label) or label in UNBOUNDED_LABELS:
            raise ValueError(f"metric {name} must not have the label {label!r}")
    return ",".join(f'{label}="{escaped(readable(value))}"' for label, value in checked)
