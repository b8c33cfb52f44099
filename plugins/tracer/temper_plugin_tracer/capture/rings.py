"""Reads the rings that the BPF recorder writes, while it writes them."""

import mmap

import numpy as np
from attrs import define, field

from temper_plugin_tracer.capture.drained import end_to_end, in_time_order
from temper_plugin_tracer.capture.kernel_layout import EVENT_BYTES, NAME, RING, RING_BYTES
from temper_plugin_tracer.trace.events import SCHED_EVENT

LAP_OF_EVENTS = 0xFFFF
LAP_OF_NAMES = 0xFFFF_FFFF


@define(eq=False)
class Ring:
    """One ring of records with a field ``lap``, and its state."""

    records: np.ndarray
    state: np.ndarray
    lap_mask: int
    _bits: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._bits = len(self.records).bit_length() - 1

    @property
    def lost(self) -> int:
        """Records that found no room."""
        return int(self.state["lost"][0])

    def take(self) -> np.ndarray:
        """Return a copy of the whole records since the last call, and give their slots back."""
        begin, end = int(self.state["taken"][0]), int(self.state["reserved"][0])
        parts = []
        while begin < end:
            part = self._whole(begin, end)
            if not len(part):
                break  # the next slot is still being written
            parts.append(part)
            begin += len(part)
        self.state["taken"][0] = begin
        return end_to_end(parts) if parts else self.records[:0].copy()

    def last(self) -> np.ndarray:
        """Return a copy of the newest records of a ring that wraps, which is not written to now."""
        end = int(self.state["reserved"][0])
        self.state["taken"][0] = max(0, end - len(self.records))
        return self.take()

    def _whole(self, begin: int, end: int) -> np.ndarray:
        """Return the whole records from *begin* to *end*, or to the end of the ring's memory."""
        size = len(self.records)
        at = begin & (size - 1)
        part = self.records[at : at + min(end - begin, size - at)]
        # Laps are read before the records: a record may be published at any moment of the copy.
        is_whole = part["lap"] == ((begin >> self._bits) + 1) & self.lap_mask
        return part[: len(part) if is_whole.all() else int(is_whole.argmin())].copy()


def event_rings(
    events: mmap.mmap, states: mmap.mmap, *, cpus: int, bits: int, first: int = 0
) -> tuple[Ring, ...]:
    """Return the rings of all CPUs. A record's ``spare`` holds its lap.

    Their states begin at number *first* of *states*.
    """
    names = SCHED_EVENT.names or ()
    layout = np.dtype(
        {
            "names": ["lap" if name == "spare" else name for name in names],
            "formats": [SCHED_EVENT[name] for name in names],
            "itemsize": EVENT_BYTES,
        }
    )
    size = 1 << bits
    records = np.frombuffer(events, layout, count=cpus * size).reshape(cpus, size)
    state = np.frombuffer(states, RING, count=cpus, offset=first * RING_BYTES)
    return tuple(Ring(records[cpu], state[cpu : cpu + 1], LAP_OF_EVENTS) for cpu in range(cpus))


def name_rings(names: mmap.mmap, states: mmap.mmap, *, rings: int, bits: int) -> tuple[Ring, ...]:
    """Return rings of names."""
    records = np.frombuffer(names, NAME, count=rings << bits).reshape(rings, 1 << bits)
    state = np.frombuffer(states, RING, count=rings)
    return tuple(Ring(records[at], state[at : at + 1], LAP_OF_NAMES) for at in range(rings))


def as_events(records: np.ndarray) -> np.ndarray:
    """Return records of a ring as events in time order."""
    events = records.view(SCHED_EVENT)
    events["spare"] = 0
    return in_time_order(events)
