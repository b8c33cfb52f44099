"""The facts of a trace beside its events on which the sums depend."""

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from temper_plugin_tracer.trace.analysis.overlaps import Throttled
from temper_plugin_tracer.trace.analysis.threads import Integers

__all__ = ["Known", "RowFacts", "Throttling"]


@frozen
class Throttling:
    """A time in which the kernel kept threads from running because of their cgroup's quota."""

    tids: frozenset[int]
    begin_ns: int
    end_ns: int


@frozen
class Known:
    """The facts of a trace beside its events on which the sums depend.

    Attributes:
        cores: CPUs by core. Without any, siblings are left out.
        planned: CPUs of each layer in the plan.
        layers: Layer of each thread by thread id.
        throttlings: When threads were throttled. Those of one set of threads must not overlap.

    """

    cores: Sequence[Sequence[int]] = ()
    planned: Mapping[str, frozenset[int]] = {}
    layers: Mapping[int, str] = {}
    throttlings: Sequence[Throttling] = ()


class RowFacts:
    """The plan and the throttling of each row of the thread table."""

    def __init__(self, known: Known) -> None:
        self._layers = known.layers
        self._cores = known.cores
        self._plans = [np.array(sorted(cpus), np.int64) for cpus in known.planned.values()]
        self._plan_of = {layer: number for number, layer in enumerate(known.planned)}
        groups = {which.tids: None for which in known.throttlings}
        self._group_of = {tid: number for number, tids in enumerate(groups) for tid in tids}
        self._spans = tuple(_spans(known.throttlings, tids) for tids in groups)
        self._groups: Integers = np.zeros(0, np.int64)
        self._rows: Integers = np.zeros(0, np.int64)

    def add(self, tids: Integers) -> None:
        """Add the rows of new threads."""
        layers = [self._layers.get(tid, "") for tid in tids.tolist()]
        plans = np.array([self._plan_of.get(layer, -1) for layer in layers], np.int64)
        groups = np.array([self._group_of.get(tid, -1) for tid in tids.tolist()], np.int64)
        self._rows = np.concatenate([self._rows, plans])
        self._groups = np.concatenate([self._groups, groups])

    def throttled(self) -> Throttled | None:
        """Return when the rows were throttled, None if the trace knows of no throttling."""
        return Throttled(self._groups, self._spans) if self._spans else None

    def is_outside(self, rows: Integers, cpus: Integers) -> NDArray[np.bool_]:
        """Return whether each CPU is outside of the plan of the row's layer."""
        plan = self._rows[rows]
        outside = np.zeros(len(rows), np.bool_)
        for number, planned in enumerate(self._plans):
            here = plan == number
            outside[here] = ~np.isin(cpus[here], planned)
        return outside

    def siblings(self, cpus: int) -> list[Integers]:
        """Return the other hyperthreads of each CPU's core, -1 without: one array for each."""
        others = max((len(core) for core in self._cores), default=1) - 1
        found = [np.full(cpus, -1, np.int64) for _ in range(others)]
        for core in self._cores:
            seen = [cpu for cpu in core if cpu < cpus]
            for cpu in seen:
                for number, other in enumerate(other for other in seen if other != cpu):
                    found[number][cpu] = other
        return found


def _spans(throttlings: Sequence[Throttling], tids: frozenset[int]) -> tuple[Integers, Integers]:
    spans = sorted((one.begin_ns, one.end_ns) for one in throttlings if one.tids == tids)
    begins = np.array([begin for begin, _ in spans], np.int64)
    return begins, np.array([end for _, end in spans], np.int64)
