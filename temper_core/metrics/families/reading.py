"""Metric families, and the reading that their values come from."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from attrs import field, frozen

from temper_core.metrics.exposition import (
    GAUGE,
    Block,
    FamilyHeader,
    block,
    histogram_lines,
    sample_line,
)
from temper_core.metrics.label_text import label, pod_labels, readable
from temper_core.metrics.source import AgentCounters
from temper_core.metrics.totals import PodKey, PodTotals, Sums
from temper_core.records.histogram import Histogram
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import (
    LayerSample,
    Overhead,
    PluginState,
    PodSample,
    Snapshot,
    Status,
)

Values = Iterable[tuple[tuple[str, ...], float]]
"""Pairs of label values, in the order of the label names, and a value."""
NEVER = "never"
UNOBSERVED = "before the first observation"
"""When the families that describe the node have no series."""
POD_LABELS = ("namespace", "pod")


class Per(StrEnum):
    """The objects that the number of a family's series is proportional to."""

    NODE = "node"
    LAYER = "layer"
    POD = "pod"
    PLUGIN = "plugin"
    INVARIANT = "invariant"
    PROFILE = "profile that cannot be loaded"


@frozen
class Reading:
    """All inputs of the core's metrics, taken at one moment.

    ``age_s`` is the snapshot's age. ``sums`` covers all snapshots so far.
    """

    snapshot: Snapshot | None
    plan: LayerPlan | None
    status: Status
    counters: AgentCounters
    plugins: tuple[PluginState, ...] = ()
    age_s: float | None = None
    sums: Sums = Sums()
    pods_age_s: float = 0.0

    @property
    def layers(self) -> tuple[LayerSample, ...]:
        """The layers as last observed."""
        return self.snapshot.layers if self.snapshot else ()

    @property
    def overhead(self) -> Overhead | None:
        """The agent's own cost as last observed."""
        return self.snapshot.overhead if self.snapshot else None


class PodReading(NamedTuple):
    """One pod as last observed, with its totals. ``labels`` is its label text."""

    labels: str
    sample: PodSample
    totals: PodTotals

    @classmethod
    def of(cls, key: PodKey, sample: PodSample, sums: Sums) -> "PodReading":
        """Join a pod with its totals."""
        return cls(pod_labels(*key), sample, sums.pods.get(key, PodTotals()))


@frozen
class Described:
    """The fields that every kind of family has.

    ``absent`` describes when there is no series. There are at most ``most`` series for each
    ``per``. ``unit`` is a base unit, empty for a plain number.
    """

    name: str
    help: str
    labels: tuple[str, ...] = field(default=(), kw_only=True)
    kind: str = field(default=GAUGE, kw_only=True)
    unit: str = field(default="", kw_only=True)
    absent: str = field(default=UNOBSERVED, kw_only=True)
    most: int = field(default=1, kw_only=True)
    per: Per = field(default=Per.NODE, kw_only=True)
    head: FamilyHeader = field(init=False, repr=False, eq=False)

    @head.default
    def _head(self) -> FamilyHeader:
        return FamilyHeader(self.name, self.help, self.kind, self.unit)


@frozen
class Family(Described):
    """A family of the node. ``read`` yields label values and a value."""

    read: Callable[[Reading], Values]

    def block(self, reading: Reading) -> Block:
        """Write the family's samples."""
        return block(
            self.head,
            ((_labels(self.labels, labels), value) for labels, value in self.read(reading)),
        )


@frozen
class HistogramFamily(Described):
    """A family of histograms of the node. ``read`` yields label values and a histogram."""

    read: Callable[[Reading], Iterable[tuple[tuple[str, ...], Histogram]]]

    def block(self, reading: Reading) -> Block:
        """Write the family's samples as a ``whole`` block."""
        lines = [
            line
            for labels, histogram in self.read(reading)
            for line in histogram_lines(self.name, _labels(self.labels, labels), histogram)
        ]
        return Block(self.head, lines, whole=True)


@frozen
class PodFamily(Described):
    """A family with at most one series for every pod. ``read`` returns its value or None.

    Values are written with six digits after the point, the fastest float format.
    """

    read: Callable[[PodReading], float | None]
    labels: tuple[str, ...] = field(default=POD_LABELS, init=False)
    per: Per = field(default=Per.POD, init=False)

    def lines(self, pods: Iterable[PodReading]) -> list[str]:
        """Write the samples of *pods*."""
        name, read = self.name, self.read
        return [
            f"{name}{{{pod.labels}}} {value:.6f}"
            for pod in pods
            if (value := read(pod)) is not None
        ]


@frozen
class PodCountFamily(Described):
    """A family with one series for every pod. ``read`` returns its value, a whole number.

    A number below 0 means unknown. Such a pod has no series.
    """

    read: Callable[[PodReading], int]
    labels: tuple[str, ...] = field(default=POD_LABELS, init=False)
    per: Per = field(default=Per.POD, init=False)

    def lines(self, pods: Iterable[PodReading]) -> list[str]:
        """Write the samples of *pods*."""
        name, read = self.name, self.read
        return [f"{name}{{{pod.labels}}} {count}" for pod in pods if (count := read(pod)) >= 0]


@frozen
class PodDetailFamily(Described):
    """A family with several series for every pod. ``read`` yields further labels and a value."""

    read: Callable[[PodReading], Iterable[tuple[str, float]]]
    per: Per = field(default=Per.POD, init=False)

    def lines(self, pods: Iterable[PodReading]) -> list[str]:
        """Write the samples of *pods*."""
        name, read = self.name, self.read
        return [
            f"{name}{{{pod.labels},{more}}} {value:.6f}"
            for pod in pods
            for more, value in read(pod)
        ]


OfPods = PodFamily | PodCountFamily | PodDetailFamily


@lru_cache(maxsize=4096)
def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    pairs = zip(names, values, strict=True)
    return ",".join(label(name, readable(value)) for name, value in pairs)


def own_line(head: FamilyHeader, value: float) -> Block:
    """Return the block of a family with one series and no labels."""
    return Block(head, (sample_line(head.name, "", value),))
