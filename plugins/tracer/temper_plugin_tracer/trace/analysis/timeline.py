"""The party on each CPU, moment by moment, during one block of events."""

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from temper_plugin_tracer.trace.analysis.parties import IDLE, PartyKind, party_code
from temper_plugin_tracer.trace.analysis.threads import Integers
from temper_plugin_tracer.trace.events import Kind

__all__ = ["CpuStates", "Timeline", "fill_forward"]

UNKNOWN = party_code(PartyKind.UNKNOWN)
THROTTLED = party_code(PartyKind.THROTTLED)
NOBODY = -1


def fill_forward(values: NDArray[Any], is_known: NDArray[np.bool_]) -> NDArray[Any]:
    """Return each value where it is known, and the last known one before it elsewhere."""
    places = np.where(is_known, np.arange(len(values)), 0)
    filled: NDArray[Any] = values[np.maximum.accumulate(places)]
    return filled


@frozen(eq=False)
class Timeline:
    """Segments of all CPUs from ``begin`` to ``end`` without a gap, in the order of CPU and time.

    Attributes:
        begin: First nanosecond of the block.
        end: Last nanosecond of the block.
        cpus: Number of CPUs.
        keys: Beginning of each segment as a key of CPU and time, ascending.
        begins: Beginning of each segment, ns.
        ends: End of each segment, ns.
        names: Codes of the parties, ascending. That of throttled waiters is among them.
        places: Place of each segment's party in ``names``.
        busy_before: Busy nanoseconds of the CPU from ``begin`` to the segment's beginning, on top
            of those of the CPUs before it.
        is_busy: Whether the party is known and not the idle task.

    """

    begin: int
    end: int
    cpus: int
    keys: Integers
    begins: Integers
    ends: Integers
    names: Integers
    places: Integers
    busy_before: Integers
    is_busy: NDArray[np.bool_]

    def key(self, cpus: NDArray[Any], ns: NDArray[Any]) -> Integers:
        """Return the keys of moments on CPUs."""
        keys: Integers = cpus.astype(np.int64) * (self.end - self.begin + 1) + (ns - self.begin)
        return keys

    def busy_ns(self, cpus: NDArray[Any], begins: Integers, ends: Integers) -> Integers:
        """Return for how long each CPU was busy in a part of the block."""
        return self._busy_until(cpus, ends) - self._busy_until(cpus, begins)

    def _busy_until(self, cpus: NDArray[Any], ns: Integers) -> Integers:
        # The last segment that begins at or before the moment is one of the same CPU, since the
        # segments of each CPU begin with the block.
        place = np.searchsorted(self.keys, self.key(cpus, ns), "right") - 1
        since = np.where(self.is_busy[place], ns - self.begins[place], 0)
        until: Integers = self.busy_before[place] + since
        return until


class CpuStates:
    """The thread, interrupt and softirq of each CPU between two blocks."""

    def __init__(self) -> None:
        self._thread: Integers = np.zeros(0, np.int64)
        self._interrupt: Integers = np.zeros(0, np.int64)
        self._softirq: Integers = np.zeros(0, np.int64)

    @property
    def count(self) -> int:
        """One more than the highest CPU so far."""
        return len(self._thread)

    @property
    def threads(self) -> Integers:
        """The thread that holds each CPU, -1 before the CPU's first switch."""
        return self._thread

    def grow(self, count: int) -> None:
        """Make room for CPUs below *count*."""
        missing = max(0, count - self.count)
        nobody = np.full(missing, NOBODY, np.int64)
        self._thread = np.concatenate([self._thread, nobody])
        self._interrupt = np.concatenate([self._interrupt, nobody])
        self._softirq = np.concatenate([self._softirq, nobody])

    def add(self, block: NDArray[Any], begin: int, end: int) -> Timeline:
        """Return the parties on the CPUs from *begin* to *end*, the times of the block's ends."""
        events = block[_changes_party(block["kind"])]
        kinds = np.concatenate([np.zeros(self.count, np.uint8), events["kind"]])
        cpus = np.concatenate([np.arange(self.count), events["cpu"]]).astype(np.uint16)
        order = np.argsort(cpus, kind="stable")
        kinds, cpus = kinds[order], cpus[order]
        ns = np.concatenate([np.full(self.count, begin), events["ns"].astype(np.int64)])[order]
        number = np.concatenate([self._thread, events["next"].astype(np.int64)])[order]
        is_first, is_switch = kinds == 0, kinds == Kind.SWITCH
        thread = fill_forward(number, is_first | is_switch)
        interrupt = self._handler(self._interrupt, kinds, number, Kind.INTERRUPT_BEGINS)
        softirq = self._handler(self._softirq, kinds, number, Kind.SOFTIRQ_BEGINS)
        last = np.flatnonzero(np.append(is_first[1:], True))
        self._thread, self._interrupt = thread[last], interrupt[last]
        self._softirq = softirq[last]
        ends = np.append(ns[1:], end)
        ends[last] = end
        return _timeline(begin, end, cpus, ns, ends, _party(thread, interrupt, softirq))

    def _handler(
        self, before: Integers, kinds: NDArray[np.uint8], number: Integers, begins: Kind
    ) -> Integers:
        """Return the number of the handler that runs after each event, or NOBODY.

        It is the one that begins last. A switch ends it, since no handler outlives one.
        """
        begin, end = kinds == begins, kinds == begins + 1
        values = np.where(begin, number, NOBODY)
        values[kinds == 0] = before
        known = begin | end | (kinds == 0) | (kinds == Kind.SWITCH)
        filled: Integers = fill_forward(values, known)
        return filled


def _changes_party(kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    changes: NDArray[np.bool_] = (kinds == Kind.SWITCH) | (kinds >= Kind.INTERRUPT_BEGINS)
    return changes


def _party(thread: Integers, interrupt: Integers, softirq: Integers) -> Integers:
    party = np.where(thread > 0, thread, np.where(thread == 0, IDLE, UNKNOWN))
    party = np.where(softirq >= 0, party_code(PartyKind.SOFTIRQ) + softirq, party)
    return np.where(interrupt >= 0, party_code(PartyKind.INTERRUPT) + interrupt, party)


def _timeline(
    begin: int, end: int, cpus: NDArray[Any], ns: Integers, ends: Integers, parties: Integers
) -> Timeline:
    is_busy = (parties != IDLE) & (parties != UNKNOWN)
    busy = np.cumsum(np.where(is_busy, ends - ns, 0))
    busy_before = np.concatenate([np.zeros(1, np.int64), busy[:-1]])
    keys = cpus.astype(np.int64) * (end - begin + 1) + (ns - begin)
    count = int(cpus.max(initial=0)) + 1
    names, places = np.unique(np.append(parties, THROTTLED), return_inverse=True)
    return Timeline(begin, end, count, keys, ns, ends, names, places[:-1], busy_before, is_busy)
