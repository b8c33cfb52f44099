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
    heat,
    lines,
    named_values,
    timeline,
)
from deploy.monitoring.wording import buckets, quantiles, rate
from temper_core import MetricFamily, PanelHint

COUNTER = "counter"
Drawn = tuple[MetricFamily, PanelHint]
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
        if drawn := _drawn(its_own, board):
            rows.append(Row(f"Plugin {plugin}", tuple(_panels(drawn)), closed=True))
    return tuple(rows)


def _drawn(families: Sequence[MetricFamily], board: str) -> list[Drawn]:
    """Return what *board* shows of *families*, each with how."""
    return [
        (family, hint)
        for family in families
        for hint in family.panels or (_usual(family),)
        if hint.board == board
    ]


def _usual(family: MetricFamily) -> PanelHint:
    """Return how a family without a hint is drawn, by its kind and name."""
    title = family.name.removeprefix("temper_").removesuffix("_total").replace("_", " ")
    return PanelHint(title.capitalize(), "per_second" if family.kind == COUNTER else "none")


def _panels(drawn: Sequence[Drawn]) -> Iterator[Panel]:
    by_title: dict[str, list[Drawn]] = {}
    for family, hint in drawn:
        by_title.setdefault(hint.title, []).append((family, hint))
    for title, together in by_title.items():
        for family, hint in together:
            if family.kind == HISTOGRAM and hint.unit == "seconds" and not hint.query:
                yield heat(title, buckets(family.name), width=12)
        yield _panel(title, together)


def _panel(title: str, drawn: Sequence[Drawn]) -> Panel:
    queries = [query for family, hint in drawn for query in _queries(family, hint)]
    unit = drawn[0][1].unit
    if unit == YES_NO:
        words = named_values((0, "no", Colour.BAD), (1, "yes", Colour.GOOD))
        return timeline(title, *queries, mappings=words)
    # Counts by label add up; what a query of the plugin's own returns may not.
    adds_up = all(
        family.kind == COUNTER and family.labels and not hint.query for family, hint in drawn
    )
    return (areas if adds_up else lines)(title, *queries, unit=UNITS[unit])


def _queries(family: MetricFamily, hint: PanelHint) -> tuple[Query, ...]:
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
