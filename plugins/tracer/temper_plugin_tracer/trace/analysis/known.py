"""The facts of a trace beside its events on which the sums depend."""

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from temper_plugin_tracer.trace.analysis.threads import Integers

__all__ = ["Known", "RowFacts"]


@frozen
class Known:
    """The facts of a trace beside its events on which the sums depend.

    Attributes:
        cores: CPUs by core. Without any, siblings are left out.
        planned: CPUs of each layer in the plan.
        layers: Layer of each thread by thread id.
        selected: Ids of the threads that the trace has all events of. None if of all threads.
        recorded: The only CPUs whose events the trace has. None if it has those of all.

    """

    cores: Sequence[Sequence[int]] = ()
    planned: Mapping[str, frozenset[int]] = {}
    layers: Mapping[int, str] = {}
    selected: frozenset[int] | None = None
    recorded: frozenset[int] | None = None


class RowFacts:
    """The plan of each row of the thread table, whether it is whole, and the siblings of CPUs.

    A row is whole if the trace has all events of the thread.
    """

    def __init__(self, known: Known) -> None:
        self._layers = known.layers
        self._cores = known.cores
        self._plans = [np.array(sorted(cpus), np.int64) for cpus in known.planned.values()]
        self._plan_of = {layer: number for number, layer in enumerate(known.planned)}
        self._selected = known.selected
        self._rows: Integers = np.zeros(0, np.int64)
        self.is_whole: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def add(self, tids: Integers) -> None:
        """Add the rows of new threads."""
        layers = [self._layers.get(tid, "") for tid in tids.tolist()]
        plans = np.array([self._plan_of.get(layer, -1) for layer in layers], np.int64)
        self._rows = np.concatenate([self._rows, plans])
        whole = [self._selected is None or tid in self._selected for tid in tids.tolist()]
        self.is_whole = np.concatenate([self.is_whole, np.array(whole, np.bool_)])

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
