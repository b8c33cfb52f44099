"""Takes the events of a trace block by block, and keeps what the report needs."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from temper_core import InputError
from temper_plugin_tracer.trace.analysis.accounts import (
    EndedWaits,
    add_to_rows,
    count_history,
    ended_waits,
    pieces_in,
    remember_states,
)
from temper_plugin_tracer.trace.analysis.history import History, history_of
from temper_plugin_tracer.trace.analysis.known import Known, RowFacts
from temper_plugin_tracer.trace.analysis.overlaps import Pieces, held_in_parts
from temper_plugin_tracer.trace.analysis.pairs import PairSums
from temper_plugin_tracer.trace.analysis.slowest import SlowestWakes, every_thread
from temper_plugin_tracer.trace.analysis.threads import RUNNING, WAITING, Integers, ThreadTable
from temper_plugin_tracer.trace.analysis.timeline import CpuStates, Timeline
from temper_plugin_tracer.trace.analysis.wakes import EdgeSums, entry_wakers, wakes_in
from temper_plugin_tracer.trace.events import Kind
from temper_plugin_tracer.trace.roster import MOST_CPUS

__all__ = ["Analyzer", "WakeAnalyzer"]

USUAL_SLOWEST = 20
LATEST_NS = 1 << 62
LONGEST_NS = 1 << 49
"""Six days. A moment on one of MOST_CPUS CPUs is a number below 2^62 then."""


class WakeAnalyzer:
    """Follows the threads of a trace, and keeps the slowest wake-ups of those that are asked for.

    ``add`` takes the trace's blocks in the order of time.
    """

    def __init__(
        self,
        known: Known | None = None,
        slowest: int = USUAL_SLOWEST,
        is_asked: Callable[[int], bool] = every_thread,
    ) -> None:
        self._known = known if known is not None else Known()
        self._rooms = RowFacts(self._known)
        self.slowest = SlowestWakes(slowest, is_asked)
        self.threads = ThreadTable(self._add_rows)
        self._cpus = CpuStates()
        self._cpus.grow(max((cpu + 1 for core in self._known.cores for cpu in core), default=0))
        self.begin_ns: int | None = None
        self.end_ns = 0
        self.events = 0

    @property
    def is_whole(self) -> NDArray[np.bool_]:
        """Whether the trace has all events of the thread, by row."""
        return self._rooms.is_whole

    @property
    def cpus(self) -> int:
        """One more than the highest CPU of the trace."""
        return self._cpus.count

    @property
    def only_cpus(self) -> tuple[int, ...]:
        """The only CPUs whose events were recorded. Empty if all were."""
        return tuple(sorted(self._known.recorded or ()))

    def add(self, block: NDArray[Any]) -> None:
        """Add the next events.

        Raises:
            InputError: if they are not in the order of time, or hold an impossible time, CPU or
                thread id.

        """
        if not len(block):
            return
        begin = self._span(block)
        timeline, history = self._read(block, begin)
        wakers = entry_wakers(block, history)
        waits = ended_waits(history, wakers, self.threads)
        count_history(history, waits, self.threads)
        wakes = wakes_in(history, waits, wakers, self.threads)
        told = evolve(waits, is_woken=waits.is_woken & self.is_whole[waits.rows])
        self.slowest.add(history, told, wakes, timeline)
        self._sum(history, told, timeline, begin)
        self._note_priorities(block)
        remember_states(history, wakers, self.threads)

    def _sum(self, history: History, told: EndedWaits, timeline: Timeline, begin: int) -> None:
        """Add a block to the sums. The slowest wake-ups need none."""

    def _add_rows(self, tids: Integers) -> None:
        self._rooms.add(tids)
        self.slowest.add_rows(tids)

    def _span(self, block: NDArray[Any]) -> int:
        first, last = int(block["ns"][0]), int(block["ns"][-1])
        ns = block["ns"]
        begin = first if self.begin_ns is None else self.end_ns
        if first < begin or (ns[1:] < ns[:-1]).any():
            raise InputError("the trace's events are not in the order of time")
        if last > LATEST_NS or last - begin > LONGEST_NS:
            raise InputError(f"the trace has events at {begin} and {last} ns, too far apart")
        self.begin_ns = begin if self.begin_ns is None else self.begin_ns
        self.end_ns = last
        self.events += len(block)
        return begin

    def _read(self, block: NDArray[Any], begin: int) -> tuple[Timeline, History]:
        goes = (block["kind"] == Kind.WAKING) | (block["kind"] == Kind.MIGRATION)
        highest = max(block["cpu"].max(), np.where(goes, block["target"], 0).max())
        if highest >= MOST_CPUS:
            raise InputError(f"the trace has an event of CPU {highest}")
        self._cpus.grow(int(highest) + 1)
        history = history_of(block, self.threads, self._cpus.threads, self._known.recorded)
        return self._cpus.add(block, begin, self.end_ns), history

    def _note_priorities(self, block: NDArray[Any]) -> None:
        switches = block[block["kind"] == Kind.SWITCH]
        self.threads.prio[self.threads.rows(switches["next"])] = switches["prio"]


class Analyzer(WakeAnalyzer):
    """Sums over a trace, beside its slowest wake-ups."""

    def __init__(self, known: Known | None = None, slowest: int = USUAL_SLOWEST) -> None:
        super().__init__(known, slowest)
        self.blockers = PairSums()
        """The parties on the CPU while a thread waited."""
        self.sharers = PairSums()
        """The parties on the sibling CPUs while a thread ran."""
        self.edges = EdgeSums()

    def _sum(self, history: History, told: EndedWaits, timeline: Timeline, begin: int) -> None:
        self.edges.add(told)
        waiting, _ = pieces_in(history, WAITING, begin, self.end_ns)
        add_to_rows(self.threads.wait_ns, waiting.rows, waiting.ends - waiting.begins)
        for keys, sums in held_in_parts(timeline, waiting):
            self.blockers.add(keys, sums)
        running, _ = pieces_in(history, RUNNING, begin, self.end_ns)
        self._add_runs(running, timeline)

    def _add_runs(self, running: Pieces, timeline: Timeline) -> None:
        ns = running.ends - running.begins
        add_to_rows(self.threads.run_ns, running.rows, ns)
        outside = self._rooms.is_outside(running.rows, running.cpus)
        add_to_rows(self.threads.outside_ns, running.rows[outside], ns[outside])
        for sibling in self._rooms.siblings(timeline.cpus):
            beside = running.at(np.flatnonzero(sibling[running.cpus] >= 0))
            cpus = sibling[beside.cpus]
            shared = timeline.busy_ns(cpus, beside.begins, beside.ends)
            add_to_rows(self.threads.shared_ns, beside.rows, shared)
            moved = evolve(beside, cpus=cpus)
            for keys, sums in held_in_parts(timeline, moved):
                self.sharers.add(keys, sums)
