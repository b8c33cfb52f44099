"""Records by the program that bcc has compiled: drains its rings, and applies the selection."""

import mmap
import struct
import time
from collections.abc import Sequence
from typing import Self

import numpy as np
from attrs import define, field

from temper_plugin_tracer.capture.bcc.compiling import TRACE_POINTS
from temper_plugin_tracer.capture.bcc.descriptors import Descriptors
from temper_plugin_tracer.capture.bpf_recorder import possible_cpus, ring_bits
from temper_plugin_tracer.capture.drained import Drained, Losses, end_to_end, in_time_order
from temper_plugin_tracer.capture.kernel_layout import (
    EVENT_BYTES,
    FORKED,
    NAME_BYTES,
    RING_BYTES,
)
from temper_plugin_tracer.capture.living_threads import LivingThreads
from temper_plugin_tracer.capture.near_events import NearEvents
from temper_plugin_tracer.capture.rings import Ring, as_events, event_rings, name_rings
from temper_plugin_tracer.capture.selection import Selection

DEPTHS = 3
NESTED_BITS = 8
"""Events that interrupts record in the middle of others, in 30 ms."""
ALL_NAME_BITS, LEAST_NAME_BITS = 16, 10
_OPEN = struct.Struct("<Q")


@define(eq=False)
class BccRecorder:
    """The loaded and attached program. ``begin`` opens it, ``drain`` may be called from then on."""

    _kernel: Descriptors
    _rings: Sequence[Sequence[Ring]]
    _names: Sequence[Ring]
    _open: mmap.mmap
    _near: NearEvents
    _living: np.ndarray | None = field(default=None, init=False)
    name: str = "bcc"
    drain_every_s: float = 0.03

    @classmethod
    def open(cls, selection: Selection, *, bits: int | None = None, sys_root: str = "/sys") -> Self:
        """Have bcc compile and load it, with rings of 2^*bits* events for each CPU.

        Raises MachineError, OSError.
        """
        near = NearEvents.of(selection)
        cpus = possible_cpus(sys_root)
        sizes = {
            "CPUS": cpus,
            "RING_BITS": ring_bits(cpus) if bits is None else bits,
            "NESTED_BITS": NESTED_BITS,
            "NAME_BITS": name_bits(cpus),
        }
        kernel = Descriptors.load(sizes)
        try:
            recorder = cls(
                kernel,
                event_rings_of(kernel, cpus, sizes["RING_BITS"]),
                name_rings(
                    kernel.memory("names", NAME_BYTES * cpus << sizes["NAME_BITS"]),
                    kernel.memory("name_rings", RING_BYTES * cpus),
                    rings=cpus,
                    bits=sizes["NAME_BITS"],
                ),
                kernel.memory("is_open", mmap.PAGESIZE),
                near,
            )
        except OSError:
            kernel.close()
            raise
        return recorder

    def begin(self) -> None:
        """Record from now on, and note the threads that live."""
        self._near.look()
        _OPEN.pack_into(self._open, 0, 1)
        self._living = LivingThreads().read()

    def end(self) -> None:
        """Detach. Recorded events can still be drained."""
        _OPEN.pack_into(self._open, 0, 0)
        self._near.is_over = True
        self._kernel.detach(tuple(TRACE_POINTS))

    def wait(self, seconds: float, most: int) -> None:  # noqa: ARG002 - it cannot know
        """Wait until the next drain, *seconds* at most."""
        time.sleep(min(self.drain_every_s, seconds))

    def is_due(self, most: int) -> bool:  # noqa: ARG002 - it cannot know
        """Return True: only a drain shows how much the selection leaves."""
        return True

    def drain(self) -> Drained:
        """Return what was recorded since the last drain."""
        with self._near.drain() as near:
            names = self._take_names()
            for row in names[names["kind"] == FORKED]:
                near.fork(int(row["parent"]), int(row["tid"]))
            by_cpu = zip(*self._rings, strict=True)
            events = near.kept({cpu: _taken(rings) for cpu, rings in enumerate(by_cpu)})
        living, self._living = self._living, None
        if living is not None:
            names = end_to_end([living, names])
        self._near.mark(names)
        return Drained({cpu: each for cpu, each in events.items() if len(each)}, names)

    def losses(self) -> Losses:
        """Return what found no room so far."""
        by_cpu = [sum(ring.lost for ring in rings) for rings in zip(*self._rings, strict=True)]
        lost = {cpu: count for cpu, count in enumerate(by_cpu) if count}
        return Losses(lost, sum(ring.lost for ring in self._names))

    def close(self) -> None:
        """Detach and unload. A second call does nothing."""
        self._kernel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_names(self) -> np.ndarray:
        names = end_to_end([ring.take() for ring in self._names])
        return in_time_order(names)


def event_rings_of(kernel: Descriptors, cpus: int, bits: int) -> list[tuple[Ring, ...]]:
    """Return by depth the rings of all CPUs: the threads', then those of nested interrupts."""
    states = kernel.memory("rings", RING_BYTES * DEPTHS * cpus)
    outer = kernel.memory("events", EVENT_BYTES * cpus << bits)
    nested = kernel.memory("nested", EVENT_BYTES * (DEPTHS - 1) * cpus << NESTED_BITS)
    inner = event_rings(nested, states, cpus=(DEPTHS - 1) * cpus, bits=NESTED_BITS, first=cpus)
    return [
        event_rings(outer, states, cpus=cpus, bits=bits),
        *(inner[at : at + cpus] for at in range(0, len(inner), cpus)),
    ]


def name_bits(cpus: int) -> int:
    """Return the binary logarithm of the names that the ring of each of *cpus* holds."""
    return max(LEAST_NAME_BITS, ALL_NAME_BITS - (cpus - 1).bit_length())


def _taken(rings: Sequence[Ring]) -> np.ndarray:
    """Return the new events of a CPU of all depths, in time order."""
    return in_time_order(end_to_end([as_events(ring.take()) for ring in rings]))
