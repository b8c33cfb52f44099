"""The answer of ``/rightsize``: advice for each container, as JSON."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from typing import Any

from attrs import asdict

from temper_core import rfc3339
from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.options import USUAL, AdviceOptions
from temper_plugin_rightsizer.advice.pressure import pressure_notes
from temper_plugin_rightsizer.advice.suggestions import suggestions
from temper_plugin_rightsizer.advice.surroundings import Surroundings, consider
from temper_plugin_rightsizer.advice.use import used
from temper_plugin_rightsizer.demand.growth import growth
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.node.collector import Collector
from temper_plugin_rightsizer.node.containers import NodeContainer
from temper_plugin_rightsizer.prices.settings import Prices
from temper_plugin_rightsizer.store.packing import OversizedError, pack

SCHEMA_VERSION = 1
USUAL_PRICES = Prices()
MOST_DEMAND_BYTES = 7 << 20
"""Of the rows with their histograms. ``kubectl temper rightsize`` takes an answer of 8 MiB."""
NOT_KNOWN = (
    "not known on a node: HPA, VPA, LimitRange, ResourceQuota, in-place resize, init containers"
)
SEPARATOR = ", "
MOST_ROWS = 4000
"""An answer of so many containers with the longest names is below the server's bound."""


def report(
    collector: Collector,
    window_s: int,
    now: float,
    options: AdviceOptions = USUAL,
    *,
    has_demand: bool = False,
    prices: Prices = USUAL_PRICES,
) -> Mapping[str, Any]:
    """Return advice for the containers on the node, by the last *window_s* seconds.

    It has at most ``MOST_ROWS`` of them, the busiest. ``left_out`` is the number of the others.
    With *has_demand* each has its histograms, and all take ``MOST_DEMAND_BYTES`` at most. *prices*
    are those of the settings, for readers of the report. It ``is_incomplete`` without the history,
    if a bug keeps demand out of it, and if nothing is learned any more.
    """
    learned = collector.look_back(window_s, now)
    problems = list(_problems(learned.unread, collector))
    known = [
        (key, container, demand)
        for key, demand in learned.demands.items()
        if (container := collector.container(key)) is not None and demand.seconds
    ]
    busiest = nlargest(MOST_ROWS, known, key=lambda row: row[2].cpu.mean())
    rows = [_row(*row, options) for row in busiest]
    if has_demand:
        demanding = (_with_demand(row, each[2]) for row, each in zip(rows, busiest, strict=True))
        rows = list(_within(demanding, MOST_DEMAND_BYTES))
    return {
        "schema_version": SCHEMA_VERSION,
        "at": rfc3339(now),
        "window_s": window_s,
        "options": asdict(options),
        "price_settings": asdict(prices),
        "left_out": len(known) - len(rows),
        "is_incomplete": bool(problems),
        "notes": [*problems, NOT_KNOWN, *pressure_notes(rows)],
        "containers": sorted(
            rows, key=lambda row: (row["namespace"], row["pod"], row["container"])
        ),
    }


def _problems(unread: str, collector: Collector) -> Iterator[str]:
    if unread:
        yield f"{unread}: the report has only the demand that is not written yet"
    yield from filter(None, (collector.keeper.failure, collector.stopped))


def _within(rows: Iterable[dict[str, Any]], most_bytes: int) -> Iterator[dict[str, Any]]:
    """Yield *rows* until they take *most_bytes* as JSON."""
    size = 0
    for row in rows:
        size += len(json.dumps(row)) + len(SEPARATOR)
        if size > most_bytes:
            return
        yield row


def _row(
    key: ContainerKey, container: NodeContainer, demand: IntervalDemand, options: AdviceOptions
) -> dict[str, Any]:
    advice = advise(demand, container.resources, options, growth(demand.floors))
    kind = container.owner.partition("/")[0]
    advice = consider(advice, Surroundings(owner_kind=kind, kind=container.kind))
    return {
        "namespace": key.namespace,
        "pod": key.pod,
        "container": key.container,
        "owner": container.owner,
        "container_kind": container.kind,
        **asdict(advice),
        "treatment": asdict(container.treatment),
        "suggestions": [asdict(each) for each in suggestions(advice, container.treatment)],
        "used": used(demand, options),
    }


def _with_demand(row: dict[str, Any], demand: IntervalDemand) -> dict[str, Any]:
    """Return *row* with what a report of several nodes is made of."""
    grown = growth(demand.floors)
    return {
        **row,
        "demand": _encoded(demand),
        "day_before": demand.day_before and _encoded(demand.day_before),
        "growth": None if grown is None else asdict(grown),
    }


def _encoded(demand: IntervalDemand) -> str:
    """Return the histograms as text. Empty if they are too large, which counts as damaged."""
    try:
        return b64encode(pack(demand)).decode()
    except OversizedError:
        return ""
