"""The scheduler's counters: starts by cause, ends by kind, and windows without an engine."""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from temper_core.records.histogram import Histogram


class ChangeMethod(StrEnum):
    """How one engine follows another: loaded beside it (warm) or after it ended (cold)."""

    WARM = "warm"
    COLD = "cold"


class EngineCounters:
    """Counters that only grow. Any thread may read them.

    ``reloads`` counts engine changes by cause: ``start``, ``plan``, ``rollback``, ``recovery``
    (after an unrequested end or a failed start), ``safe_mode`` (after it was left) and ``hotplug``
    (the engine re-attached by itself). ``ejections`` counts failures by the kind of end.
    ``swaps`` counts the proven planned changes by method. ``swap_failures`` counts successors
    that were not proven, by the kind of their end. A *stock window* is the time between the
    kernel dropping one engine and taking the next in a planned change. ``stock_seconds`` holds
    all windows, ``stock_seconds_by_way`` those of each method.
    """

    def __init__(self) -> None:
        self.reloads: Counter[str] = Counter()
        self.ejections: Counter[str] = Counter()
        self.swaps: Counter[str] = Counter()
        self.swap_failures: Counter[str] = Counter()
        self.stock_seconds = Histogram()
        self.stock_seconds_by_way: Mapping[ChangeMethod, Histogram] = MappingProxyType(
            {way: Histogram() for way in ChangeMethod}
        )

    def note_window(self, seconds: float, way: ChangeMethod = ChangeMethod.COLD) -> None:
        """Count one window on the stock scheduler."""
        self.stock_seconds = self.stock_seconds.with_value(seconds)
        by_way = {**self.stock_seconds_by_way}
        by_way[way] = by_way[way].with_value(seconds)
        self.stock_seconds_by_way = MappingProxyType(by_way)
