"""The result of a recorder's drain, the same for every backend."""

from collections.abc import Iterable, Iterator, Mapping

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


def gathered(drains: Iterable[Drained], most_events: int) -> Iterator[Drained]:
    """Yield the drains joined with those after them, up to *most_events* events or a larger drain.

    A node with few events has hundreds of small drains. Encoding one of them takes as long as
    encoding thousands of events.
    """
    held: list[Drained] = []
    count = 0
    for drained in drains:
        if held and count + drained.count > most_events:
            yield _joined(held)
            held, count = [], 0
        held.append(drained)
        count += drained.count
    if held:
        yield _joined(held)


def _joined(drains: list[Drained]) -> Drained:
    if len(drains) == 1:
        return drains[0]
    cpus = sorted({cpu for drained in drains for cpu in drained.events})
    events = {
        cpu: in_time_order(end_to_end([each.events[cpu] for each in drains if cpu in each.events]))
        for cpu in cpus
    }
    names = [each.names for each in drains if each.names is not None]
    return Drained(events, end_to_end(names) if names else None)


def end_to_end(parts: list[np.ndarray]) -> np.ndarray:
    """Concatenate records of one layout.

    numpy would copy them field by field. As plain bytes they take a tenth of the time.
    """
    if len(parts) == 1:
        return parts[0]
    layout = parts[0].dtype
    plain = np.dtype((np.void, layout.itemsize))
    return np.concatenate([each.view(plain) for each in parts]).view(layout)


def in_time_order(events: np.ndarray) -> np.ndarray:
    """Return events of one CPU in time order.

    An interrupt between the reading of the clock and the reservation of a slot swaps two records.
    """
    ns = events["ns"]
    if len(ns) > 1 and (ns[1:] < ns[:-1]).any():
        return events[np.argsort(ns, kind="stable")]
    return events


@frozen
class Losses:
    """Events that found no room, by CPU, names that found none, and events outside of any CPU."""

    by_cpu: Mapping[int, int] = field(factory=dict)
    names: int = 0

    @property
    def count(self) -> int:
        """The number of lost events."""
        return sum(self.by_cpu.values())
