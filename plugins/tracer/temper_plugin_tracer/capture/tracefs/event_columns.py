"""Turns the events of a trace buffer into those of a recording."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from attrs import define, field, frozen

from temper_plugin_tracer.capture.tracefs.formats import (
    EventFormat,
    PageFormat,
    read_event,
    read_pages,
)
from temper_plugin_tracer.capture.tracefs.pages import find_events
from temper_plugin_tracer.trace.events import SCHED_EVENT, Kind

COLUMNS: Mapping[str, tuple[Kind, Mapping[str, str]]] = {
    "sched/sched_switch": (
        Kind.SWITCH,
        {"prev": "prev_pid", "next": "next_pid", "state": "prev_state", "prio": "next_prio"},
    ),
    "sched/sched_waking": (
        Kind.WAKING,
        {"prev": "common_pid", "next": "pid", "prio": "prio", "target": "target_cpu"},
    ),
    "sched/sched_migrate_task": (
        Kind.MIGRATION,
        {"prev": "orig_cpu", "next": "pid", "prio": "prio", "target": "dest_cpu"},
    ),
    "irq/irq_handler_entry": (Kind.INTERRUPT_BEGINS, {"next": "irq"}),
    "irq/irq_handler_exit": (Kind.INTERRUPT_ENDS, {"next": "irq"}),
    "irq/softirq_entry": (Kind.SOFTIRQ_BEGINS, {"next": "vec"}),
    "irq/softirq_exit": (Kind.SOFTIRQ_ENDS, {"next": "vec"}),
}
"""By event: the field of the kernel that each column of ``SCHED_EVENT`` has."""
NAME_EVENTS = (
    "task/task_newtask",
    "task/task_rename",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
)
IN_INTERRUPT = np.uint32(0x58)
"""Bits of ``common_flags``: a hardware interrupt, a softirq, an NMI."""
INTERRUPT_WAKES = 1
_MOST_IDS = 1 << 16
_STATES = np.uint32(0x1FF)
_IDS = np.uint32(0xFFFF)


@frozen
class NameEvent:
    """An event that changes the names of threads: its values are numbers and texts."""

    event: str
    ns: int
    values: Mapping[str, int | bytes]


@frozen
class Found:
    """The content of a stretch of a CPU's buffer.

    Attributes:
        events: SCHED_EVENT in time order, without processes.
        comms: By tid, names that the switches have shown.

    """

    events: np.ndarray
    names: tuple[NameEvent, ...]
    comms: Mapping[int, bytes]


@define(eq=False)
class EventReader:
    """Reads the pages of an instance by the formats that its kernel describes."""

    pages: PageFormat
    formats: Mapping[str, EventFormat]
    _kind_of: np.ndarray = field(factory=lambda: np.zeros(_MOST_IDS, np.uint8))

    @classmethod
    def of(cls, tracefs: Path, instance: Path) -> "EventReader":
        """Read the formats. Raises OSError, MachineError."""
        formats = {event: read_event(instance, event) for event in (*COLUMNS, *NAME_EVENTS)}
        reader = cls(read_pages(tracefs), formats)
        for event, (kind, columns) in COLUMNS.items():
            reader._kind_of[formats[event].id] = kind
            for name in columns.values():
                formats[event].word_of(name)  # a kernel without it is refused now
        return reader

    def read(self, content: bytes, cpu: int) -> Found:
        """Read whole pages of the buffer of *cpu*."""
        words = np.frombuffer(content, "<u4")
        places, times = find_events(words, self.pages)
        ids = words[places] & _IDS
        kinds = self._kind_of[ids]
        is_event = kinds > 0
        events = np.zeros(int(is_event.sum()), SCHED_EVENT)
        events["ns"], events["kind"] = times[is_event], kinds[is_event]
        events["cpu"] = events["target"] = cpu
        places_of = places[is_event]
        for event, (kind, columns) in COLUMNS.items():
            chosen = np.flatnonzero(events["kind"] == kind)
            self._fill(events, chosen, words, places_of[chosen], (event, columns))
        names = self._names(content, places[~is_event], times[~is_event], ids[~is_event])
        return Found(events, tuple(names), self._comms(words, places_of, events))

    def _fill(
        self,
        events: np.ndarray,
        chosen: np.ndarray,
        words: np.ndarray,
        places: np.ndarray,
        source: tuple[str, Mapping[str, str]],
    ) -> None:
        event, columns = source
        for column, name in columns.items():
            values = words[places + self.formats[event].word_of(name)]
            if column == "state":
                values &= _STATES
            events[column][chosen] = values.astype(SCHED_EVENT[column])
        if event == "sched/sched_waking":
            flags = words[places] >> np.uint32(16) & IN_INTERRUPT
            is_interrupt = (flags > 0) | (events["prev"][chosen] == 0)
            events["flags"][chosen] = np.where(is_interrupt, INTERRUPT_WAKES, 0)

    def _comms(self, words: np.ndarray, places: np.ndarray, events: np.ndarray) -> dict[int, bytes]:
        """Return the name of each thread that a switch has shown, as of the last one."""
        fields = self.formats["sched/sched_switch"].fields
        comm = fields.get("next_comm")
        if comm is None or comm.is_located:
            return {}
        at = np.flatnonzero(events["kind"] == Kind.SWITCH)[::-1]
        tids, first = np.unique(events["next"][at], return_index=True)
        offsets = np.arange(comm.offset // 4, (comm.offset + comm.size) // 4)
        texts = words[places[at[first]][:, None] + offsets].view(f"S{comm.size}")[:, 0]
        return dict(zip(tids.tolist(), texts.tolist(), strict=True))

    def _names(
        self, content: bytes, places: np.ndarray, times: np.ndarray, ids: np.ndarray
    ) -> Iterator[NameEvent]:
        known = {self.formats[event].id: event for event in NAME_EVENTS}
        for place, ns, number in zip(places.tolist(), times.tolist(), ids.tolist(), strict=True):
            event = known.get(number)
            if event is not None:
                yield NameEvent(event, ns, self._values(content, place * 4, event))

    def _values(self, content: bytes, at: int, event: str) -> dict[str, int | bytes]:
        values: dict[str, int | bytes] = {}
        for name, where in self.formats[event].fields.items():
            begin, size = at + where.offset, where.size
            if where.is_located:
                location = int.from_bytes(content[begin : begin + 4], "little")
                begin, size = at + (location & 0xFFFF), location >> 16
            part = content[begin : begin + size]
            is_text = where.is_located or size > 8  # noqa: PLR2004 - a number of 64 bits
            values[name] = part.split(b"\0", 1)[0] if is_text else int.from_bytes(part, "little")
        return values
