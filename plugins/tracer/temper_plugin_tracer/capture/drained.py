"""What a recorder gives at a drain: the same for every backend."""

from collections.abc import Mapping

import numpy as np
from attrs import field, frozen


@frozen
class Drained:
    """The events of a stretch of time.

    Attributes:
        events: SCHED_EVENT by CPU, in time order.
        names: ``kernel_layout.NAME``, in the order of their noting.

    """

    events: Mapping[int, np.ndarray] = field(factory=dict)
    names: np.ndarray | None = None

    @property
    def count(self) -> int:
        """The number of events."""
        return sum(len(events) for events in self.events.values())


@frozen
class Losses:
    """Events that found no room, by CPU, names that found none, and events outside of any CPU."""

    by_cpu: Mapping[int, int] = field(factory=dict)
    names: int = 0

    @property
    def count(self) -> int:
        """The number of lost events."""
        return sum(self.by_cpu.values())
