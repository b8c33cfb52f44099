"""Rows of panels for the families that plugins declare, one row for each plugin."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from deploy.monitoring.board import Row
from deploy.monitoring.catalogue import HISTOGRAM, declared
from deploy.monitoring.panels import (
    Colour,
    Panel,
    Query,
    Unit,
    areas,
    lines,
    named_values,
    timeline,
)
from deploy.monitoring.wording import quantiles, rate
from temper_core import MetricFamily, PanelHint

COUNTER = "counter"
YES_NO = "yes_no"
UNITS = MappingProxyType(
    {
        "none": Unit.NONE,
        "seconds": Unit.SECONDS,
        "bytes": Unit.BYTES,
        "ratio": Unit.RATIO,
        "cpus": Unit.CPUS,
        "per_second": Unit.PER_SECOND,
        "per_hour": Unit.PER_HOUR,
    }
)


def plugin_rows(
    board: str, families: Mapping[str, Sequence[MetricFamily]] | None = None
) -> tuple[Row, ...]:
    """Return a row for each plugin with families on *board*; without *families*, those declared."""
    rows = []
    for plugin, its_own in (declared() if families is None else families).items():
        panels = tuple(_panels([each for each in its_own if _hint(each).board == board]))
        if panels:
            rows.append(Row(f"Plugin {plugin}", panels, closed=True))
    return tuple(rows)


def _panels(families: Sequence[MetricFamily]) -> Iterator[Panel]:
    by_title: dict[str, list[MetricFamily]] = {}
    for family in families:
        by_title.setdefault(_hint(family).title, []).append(family)
    for title, together in by_title.items():
        yield _panel(title, together)


def _panel(title: str, families: Sequence[MetricFamily]) -> Panel:
    queries = [query for family in families for query in _queries(family)]
    hint = _hint(families[0])
    if hint.unit == YES_NO:
        words = named_values((0, "no", Colour.BAD), (1, "yes", Colour.GOOD))
        return timeline(title, *queries, mappings=words)
    # What is counted by label adds up; what was summed or chosen by a query of its own may not.
    adds_up = all(
        each.kind == COUNTER and each.labels and not _hint(each).query for each in families
    )
    return (areas if adds_up else lines)(title, *queries, unit=UNITS[hint.unit])


def _queries(family: MetricFamily) -> tuple[Query, ...]:
    hint = _hint(family)
    legend = hint.legend or " ".join(f"{{{{{label}}}}}" for label in family.labels)
    legend = legend or hint.title.lower()
    if hint.query:
        return (Query(hint.query, legend),)
    if family.kind == HISTOGRAM:
        return quantiles(family.name)
    if family.kind == COUNTER:
        return (Query(rate(family.name, *family.labels), legend),)
    grouped = f" by ({', '.join(family.labels)}) " if family.labels else ""
    return (Query(f"max{grouped}({family.name}{{@}})", legend),)


def _hint(family: MetricFamily) -> PanelHint:
    """Return the plugin's hint, or else one by the family's kind and name."""
    if family.panel is not None:
        return family.panel
    title = family.name.removeprefix("temper_").removesuffix("_total").replace("_", " ")
    return PanelHint(title.capitalize(), "per_second" if family.kind == COUNTER else "none")
