"""The selection of a recorder whose kernel part records the whole node."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

import numpy as np
from attrs import define, field

from temper_plugin_tracer.capture.nearness import Nearness
from temper_plugin_tracer.capture.selected_threads import SelectedThreads
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.trace.events import Kind, chosen

_FOREVER = np.uint64(1 << 63)


@define(eq=False)
class NearEvents:
    """Keeps the events of a selection, and all of the whole node.

    Events after the beginning of a drain are held back until the next: what other CPUs have
    recorded up to then decides on them.

    Attributes:
        is_over: Whether nothing is recorded any more, so that nothing is held back.

    """

    is_over: bool = False
    _selected: SelectedThreads | None = None
    _cpus: tuple[int, ...] = ()
    _near: Nearness = field(factory=Nearness)
    _held: dict[int, np.ndarray] = field(factory=dict)
    _until: np.uint64 = _FOREVER

    @classmethod
    def of(cls, selection: Selection) -> Self:
        """Select. Raise MachineError if the selected threads cannot be known here."""
        return cls(selected=SelectedThreads.of(selection), cpus=selection.cpus)

    def look(self) -> None:
        """Add the threads that are selected now."""
        if self._selected is not None:
            self._selected.look()

    @contextmanager
    def drain(self) -> Iterator[Self]:
        """Begin a drain, before the first buffer is read."""
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._until = _FOREVER if self.is_over else np.uint64(now)
        self.look()
        yield self

    def fork(self, parent: int, child: int) -> None:
        """Add the child of a selected thread."""
        if self._selected is not None:
            self._selected.fork(parent, child)

    def mark(self, names: np.ndarray) -> None:
        """Say in records of names which of the threads are selected."""
        if self._selected is not None:
            self._selected.mark(names)

    def kept(self, events: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Return the events to keep, by CPU."""
        if self._cpus:
            events = {cpu: chosen(each, is_about(each, self._cpus)) for cpu, each in events.items()}
        if self._selected is None:
            return dict(events)
        settled = {}
        for cpu, each in events.items():
            whole = np.concatenate([self._held.pop(cpu, each[:0]), each])
            cut = int(np.searchsorted(whole["ns"], self._until, side="right"))
            settled[cpu], self._held[cpu] = whole[:cut], whole[cut:]
        return self._near.kept(settled, self._selected.mask)


def is_about(events: np.ndarray, cpus: Sequence[int]) -> np.ndarray:
    """Return whether each event is about one of *cpus*, by the rule of ``recorder.bpf.c``.

    A waking is about the CPU where the thread is queued, a migration about the one that it leaves
    and the one that it goes to, and any other event about the CPU where it happens.
    """
    leaves = (events["kind"] == Kind.MIGRATION) & np.isin(events["prev"], cpus)
    about: np.ndarray = np.isin(events["target"], cpus) | leaves
    return about
