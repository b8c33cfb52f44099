"""When the containers of a fleet started."""

from collections.abc import Iterable
from itertools import chain
from math import ceil

from attrs import define, field, frozen

from temper_plugin_rightsizer.fleet.demands import Replica
from temper_plugin_rightsizer.fleet.windows import Window


@frozen
class Span:
    """A time in seconds, from *begin* to *end*."""

    begin: float
    end: float


@define
class Starts:
    """The starts of containers in and shortly before *window*. A start-up takes *startup_s*."""

    window: Window
    startup_s: int
    _by_replica: dict[Replica, set[int]] = field(factory=dict, init=False)

    def __bool__(self) -> bool:
        """Return whether any container has started."""
        return bool(self._by_replica)

    def note(self, replica: Replica, moments: Iterable[float]) -> None:
        """Note starts of *replica*, in seconds."""
        self._by_replica.setdefault(replica, set()).update(map(int, moments))

    def steps(self, replica: Replica) -> frozenset[int]:
        """Return the steps whose rate is of a start-up, in part at least."""
        step_s, begin = self.window.step_s, self.window.at(0)
        length_s = self.startup_s + self.window.rate_s
        spans = (
            range((start - begin) // step_s + 1, ceil((start + length_s - begin) / step_s))
            for start in self._by_replica.get(replica, ())
        )
        return frozenset(chain.from_iterable(spans))

    def touch(self, replica: Replica, span: Span) -> bool:
        """Return whether *replica* was starting at any time of *span*."""
        return any(
            start <= span.end and span.begin < start + self.startup_s
            for start in self._by_replica.get(replica, ())
        )
