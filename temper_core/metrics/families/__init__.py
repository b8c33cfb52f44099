"""The metric families of the core, by topic. ``docs/metrics.md`` is made from these tables.

The tables are in order of importance: a scrape with too many series loses the last families first.
"""

from temper_core.metrics.exposition import COUNTER
from temper_core.metrics.families.agent import PLUGINS, STATE
from temper_core.metrics.families.layers import LAYERS, TIERS
from temper_core.metrics.families.node import (
    INSTRUMENTS,
    LINT,
    OBSERVING,
    OVERHEAD,
    PRESSURE,
    STEERING,
)
from temper_core.metrics.families.pods import PODS, THREADS
from temper_core.metrics.families.profiles import PROFILES
from temper_core.metrics.families.reading import NEVER, Described, Family

LIVE = (*STATE, *PLUGINS)
"""Families of the agent's state at the scrape."""
OBSERVED = (
    *LINT,
    *PROFILES,
    *TIERS,
    *STEERING,
    *OVERHEAD,
    *INSTRUMENTS,
    *PRESSURE,
    *OBSERVING,
    *LAYERS,
)
"""Families of the last observation."""

SERIES = Family(
    "temper_series",
    "Number of series in this scrape.",
    lambda _: (),
    absent=NEVER,
)
DROPPED = Family(
    "temper_series_dropped_total",
    "Series left out of scrapes so far: over [observe] series_limit, or exported twice.",
    lambda _: (),
    kind=COUNTER,
    absent=NEVER,
)

FAMILIES: tuple[Described, ...] = (
    *LIVE,
    *OBSERVED,
    *PODS,
    *THREADS,
    SERIES,
    DROPPED,
)

__all__ = [
    "DROPPED",
    "FAMILIES",
    "LIVE",
    "OBSERVED",
    "PODS",
    "SERIES",
    "THREADS",
]
