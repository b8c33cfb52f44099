"""The intervals that wait for the disk."""

import threading

import structlog
from attrs import define, field

from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.store.history import HOUR_S

MOST_HOURS = 4
"""An hour of 250 containers takes some 1.6 MB."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define(eq=False)
class UnwrittenInterval:
    """The demands in *seconds* since *at*, of one interval or of more in the same hour."""

    at: int
    seconds: int
    demands: dict[ContainerKey, IntervalDemand]

    def merge(self, later: "UnwrittenInterval") -> None:
        """Add a *later* interval, as the history itself merges those of an hour."""
        self.seconds += later.seconds
        for key, demand in later.demands.items():
            if key in self.demands:
                self.demands[key].merge(demand)
            else:
                self.demands[key] = demand


@define(eq=False)
class UnwrittenIntervals:
    """Those of the last ``MOST_HOURS``, each hour as one. One thread adds, and another one takes.

    The one that is taken stays until ``end``, so that a reader always finds it.
    """

    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _waiting: list[UnwrittenInterval] = field(factory=list, init=False)
    _taken: UnwrittenInterval | None = field(default=None, init=False)

    def add(self, interval: UnwrittenInterval) -> None:
        """Let *interval* wait. The oldest one is forgotten beyond the bound."""
        with self._lock:
            last = self._waiting[-1] if self._waiting else None
            if last is not None and last.at // HOUR_S == interval.at // HOUR_S:
                last.merge(interval)
            else:
                self._waiting.append(interval)
            self._keep_bound()

    def take(self) -> UnwrittenInterval | None:
        """Return the oldest interval, which is then not changed any more. None if none waits."""
        with self._lock:
            self._taken = self._waiting.pop(0) if self._waiting else None
            return self._taken

    def end(self, *, is_written: bool) -> None:
        """Forget the interval that was taken, or let it wait again."""
        with self._lock:
            taken, self._taken = self._taken, None
            if taken is not None and not is_written:
                self._waiting.insert(0, taken)
                self._keep_bound()

    def all(self) -> tuple[UnwrittenInterval, ...]:
        """Return all intervals that are not written, the oldest first."""
        with self._lock:
            taken = () if self._taken is None else (self._taken,)
            return (*taken, *self._waiting)

    def _keep_bound(self) -> None:
        while len(self._waiting) > MOST_HOURS:
            log.warning("unwritten_demand_forgotten", at=self._waiting.pop(0).at)
