"""The two text formats of a scrape, written by hand: ten times as fast as the client library.

Prometheus text 0.0.4 and OpenMetrics 1.0 have the same lines of samples, and differ in how a
counter is announced, in units, in what a help text escapes, and in the end.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve, field, frozen

from temper_core.metrics.label_text import escaped, without_surrogates
from temper_core.records.histogram import Histogram

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
TOTAL = "_total"

_ENDINGS = {
    COUNTER: ("", TOTAL, "_created"),
    HISTOGRAM: ("", "_bucket", "_count", "_sum", "_created"),
}


@frozen
class FamilyHeader:
    """What is said of a family before its samples. ``name`` is a counter's with ``_total``.

    ``plain`` and ``openmetrics`` is how either format says it.
    """

    name: str
    help: str
    kind: str = GAUGE
    unit: str = ""

    plain: str = field(init=False, repr=False, eq=False)
    openmetrics: str = field(init=False, repr=False, eq=False)

    @plain.default
    def _plain(self) -> str:
        help_text = without_surrogates(self.help).replace("\\", r"\\").replace("\n", r"\n")
        return f"# HELP {self.name} {help_text}\n# TYPE {self.name} {self.kind}"

    @openmetrics.default
    def _openmetrics(self) -> str:
        name = self.name.removesuffix(TOTAL) if self.kind == COUNTER else self.name
        has_unit = self.unit and name.endswith(f"_{self.unit}")
        unit = f"\n# UNIT {name} {self.unit}" if has_unit else ""
        return f"# HELP {name} {escaped(self.help)}\n# TYPE {name} {self.kind}{unit}"


@frozen
class Block:
    """One family with its samples, one line each. A ``whole`` one is kept or dropped as one.

    ``repeated`` are the samples that were left out because their labels had come before.
    """

    head: FamilyHeader
    lines: Sequence[str]
    whole: bool = False
    repeated: int = 0


def block(head: FamilyHeader, samples: Iterable[tuple[str, float]]) -> Block:
    """Make a block of label texts and values. Of equal labels the first sample counts."""
    lines: dict[str, str] = {}
    count = 0
    for count, (labels, value) in enumerate(samples, start=1):  # noqa: B007 - used after the loop
        lines.setdefault(labels, sample_line(head.name, labels, value))
    return Block(head, tuple(lines.values()), repeated=count - len(lines))


def sample_line(name: str, labels: str, value: float) -> str:
    """Write one sample. *labels* as text, empty without any."""
    return f"{name}{{{labels}}} {number(value)}" if labels else f"{name} {number(value)}"


def histogram_lines(name: str, labels: str, histogram: Histogram) -> Iterator[str]:
    """Write a histogram: its buckets, each with all below it, the count and the sum."""
    before = f"{labels}," if labels else ""
    below = 0
    for bound, count in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        below += count
        yield f'{name}_bucket{{{before}le="{number(float(bound))}"}} {below}'
    yield sample_line(f"{name}_count", labels, below)
    yield sample_line(f"{name}_sum", labels, histogram.total)


def number(value: float) -> str:
    """Write a value as both formats have it."""
    if math.isfinite(value):
        return repr(float(value))
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def names_of(head: FamilyHeader) -> set[str]:
    """Return every name that a family takes for itself, in either format."""
    stem = head.name.removesuffix(TOTAL) if head.kind == COUNTER else head.name
    return {stem + ending for ending in _ENDINGS.get(head.kind, ("",))}


def within(blocks: Iterable[Block], limit: int) -> tuple[list[Block], int]:
    """Keep the first *limit* series. Return them with the number of the others."""
    kept: list[Block] = []
    dropped, room = 0, limit
    for each in blocks:
        fits = len(each.lines) <= room
        lines = each.lines if fits else () if each.whole else each.lines[:room]
        room -= len(lines)
        dropped += each.repeated + len(each.lines) - len(lines)
        if lines or not each.lines:
            kept.append(each if fits else evolve(each, lines=lines))
    return kept, dropped


def count_of(blocks: Iterable[Block]) -> int:
    """Return the number of series."""
    return sum(len(each.lines) for each in blocks)


def text_of(blocks: Iterable[Block], *, openmetrics: bool) -> bytes:
    """Write blocks in one of the two formats, without what ends a scrape."""
    lines: list[str] = []
    for each in blocks:
        lines.append(each.head.openmetrics if openmetrics else each.head.plain)
        lines += each.lines
    return "\n".join([*lines, ""]).encode() if lines else b""
