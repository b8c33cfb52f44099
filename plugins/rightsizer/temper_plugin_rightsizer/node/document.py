"""The answer of ``/rightsize``: advice for each container, as JSON."""

from collections.abc import Mapping
from heapq import nlargest
from typing import Any

from attrs import asdict

from temper_core import rfc3339
from temper_plugin_rightsizer.advice.advising import advise, judged, startup_use
from temper_plugin_rightsizer.advice.options import USUAL, AdviceOptions
from temper_plugin_rightsizer.demand.growth import growth
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.node.collector import Collector
from temper_plugin_rightsizer.node.containers import NodeContainer

SCHEMA_VERSION = 1
MOST_ROWS = 4000
"""An answer of so many containers with the longest names is below the server's bound."""


def report(
    collector: Collector, window_s: int, now: float, options: AdviceOptions = USUAL
) -> Mapping[str, Any]:
    """Return advice for the containers on the node, by the last *window_s* seconds.

    It has at most ``MOST_ROWS`` of them, the busiest. ``left_out`` is the number of the others.
    """
    demands = collector.demands(window_s, now)
    known = [
        (key, container, demand)
        for key, demand in demands.items()
        if (container := collector.container(key)) is not None and demand.seconds
    ]
    busiest = nlargest(MOST_ROWS, known, key=lambda row: row[2].cpu.mean())
    rows = [_row(*row, options) for row in busiest]
    return {
        "schema_version": SCHEMA_VERSION,
        "at": rfc3339(now),
        "window_s": window_s,
        "options": asdict(options),
        "left_out": len(known) - len(rows),
        "containers": sorted(
            rows, key=lambda row: (row["namespace"], row["pod"], row["container"])
        ),
    }


def _row(
    key: ContainerKey, container: NodeContainer, demand: IntervalDemand, options: AdviceOptions
) -> dict[str, Any]:
    advice = advise(demand, container.resources, options, growth(demand.floors))
    startup = demand.startup
    demand = judged(demand)
    hottest = demand.ranks[0].percentile(options.percentile) if demand.ranks else 0.0
    return {
        "namespace": key.namespace,
        "pod": key.pod,
        "container": key.container,
        "owner": container.owner,
        **asdict(advice),
        "used": {
            "cpu_mean": round(demand.cpu.mean(), 3),
            "cpu_percentile": round(demand.cpu.percentile(options.percentile), 3),
            "cpu_peak": round(demand.cpu.peak(), 3),
            "hottest_thread": round(hottest, 3),
            "memory_peak_bytes": demand.counts.peak_bytes,
            "throttled_s": round(demand.counts.throttled_s, 3),
            **startup_use(startup),
        },
    }
