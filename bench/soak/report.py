"""The verdict on the records of a soak, as a table, and its plots."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from attrs import frozen

from bench.ladder.plots import Series, svg
from bench.ladder.spreads import Spread
from bench.soak.trend import Point, Trend, Verdict, blocks_of, trend_of

WARM_UP = 0.25
"""The part of the run that is left out, while caches fill and modules are imported."""

Record = Mapping[str, float]


@frozen
class Measure:
    """A figure of the samples, and how much it may grow in an hour."""

    key: str
    title: str
    allowed_per_hour: float | None


MEASURES = (
    Measure("rss_mib", "RSS, MiB", 1.0),
    Measure("anonymous_mib", "anonymous memory, MiB", 1.0),
    Measure("descriptors", "file descriptors", 1.0),
    Measure("bpf_descriptors", "BPF descriptors", 1.0),
    Measure("threads", "threads", 1.0),
    Measure("children", "child processes", 1.0),
    Measure("cpu_percent", "CPU, % of a core", 0.1),
    # The log of events and the history of requests grow up to bounds of their own.
    Measure("state_kib", "state on disk, KiB", None),
    Measure("cgroups", "cgroups of the machine", 1.0),
    Measure("instances", "tracefs instances", 1.0),
    # Bursts of other jobs, which the agent observes and remembers.
    Measure("machine_threads", "threads of the machine", None),
)


@frozen
class Row:
    """What one measure did after the warm-up."""

    measure: Measure
    series: Sequence[Point]
    trend: Trend

    @property
    def verdict(self) -> Verdict | None:
        """Whether it grows, None for a measure that may."""
        allowed = self.measure.allowed_per_hour
        return None if allowed is None else self.trend.verdict(allowed)


def rows(records: Sequence[Record]) -> list[Row]:
    """Judge every measure that was taken; raise ValueError where the run was too short."""
    told = list(with_cpu_share(records))
    ends_s = told[-1]["at_s"] if told else 0.0
    settled = [record for record in told if record["at_s"] >= WARM_UP * ends_s]
    taken = [measure for measure in MEASURES if all(measure.key in record for record in settled)]
    return [_judged(measure, settled) for measure in taken]


def _judged(measure: Measure, settled: Sequence[Record]) -> Row:
    series = [(record["at_s"], record[measure.key]) for record in settled]
    return Row(measure, series, trend_of(series))


def with_cpu_share(records: Sequence[Record]) -> Iterator[Record]:
    """Yield all records but the first, with the CPU time since the one before, in % of a core."""
    for before, record in pairwise(records):
        used_s = record["cpu_s"] - before["cpu_s"]
        share = 100 * used_s / (record["at_s"] - before["at_s"])
        yield {**record, "cpu_percent": share}


def table(judged: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield "| measure | mean | least | most | slope an hour, 95 % | allowed | verdict |"
    yield "| --- | --: | --: | --: | --: | --: | --- |"
    for row in judged:
        values = [value for _, value in row.series]
        mean = sum(values) / len(values)
        slope = f"{row.trend.per_hour:+.2f} ± {row.trend.half_width:.2f}"
        allowed = row.measure.allowed_per_hour
        ends = f"{min(values):.4g} | {max(values):.4g}"
        yield (
            f"| {row.measure.title} | {mean:.4g} | {ends} | {slope} | "
            f"{'-' if allowed is None else f'{allowed:g}'} | {row.verdict or '-'} |"
        )


def plots(judged: Sequence[Row]) -> Mapping[str, str]:
    """Return the SVG file of each measure: the median of each block, from least to most."""
    return {
        f"soak-{row.measure.key}.svg": svg(
            f"{row.measure.title}, after the warm-up",
            "minutes",
            row.measure.title,
            [Series("agent", [(b.at_s / 60, Spread(b.values)) for b in blocks_of(row.series)])],
            is_joined=True,
        )
        for row in judged
    }
