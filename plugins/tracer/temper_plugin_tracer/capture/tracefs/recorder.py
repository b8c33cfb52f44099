"""Records by an instance of tracefs: what the kernel's trace events tell, read as it is written.

The kernel records the whole node. A selection of threads and CPUs is applied here: the kernel's
own filter (set_event_pid) leaves out what runs on a CPU while a selected thread waits,
and an event that it leaves out costs nearly as much as one that it records.
"""

import time
from contextlib import ExitStack
from typing import Self

import numpy as np
from attrs import define, field

from temper_plugin_tracer.capture.bpf_recorder import possible_cpus
from temper_plugin_tracer.capture.drained import Drained, Losses, end_to_end
from temper_plugin_tracer.capture.kernel_layout import NAME
from temper_plugin_tracer.capture.living_threads import LivingThreads, Row, as_names
from temper_plugin_tracer.capture.near_events import NearEvents
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.capture.tracefs.event_columns import (
    COLUMNS,
    NAME_EVENTS,
    EventReader,
    Found,
    NameEvent,
)
from temper_plugin_tracer.capture.tracefs.instance import TracingInstance
from temper_plugin_tracer.capture.who_is_who import MOST_TIDS
from temper_plugin_tracer.trace.events import SCHED_EVENT, Kind

ALL_BUFFERS_KIB = 32 * 1024
LEAST_BUFFER_KIB = 256
"""Of each CPU: an event takes 36 to 68 bytes."""
PART_BYTES, MOST_PARTS = 2 * 1024 * 1024, 2
"""Bytes that are read at once, and how many times of a CPU in one drain."""
CLONE_THREAD = 0x10000


@define(eq=False)
class TracefsRecorder:
    """An instance that is set up. ``begin`` switches it on, and ``drain`` reads it from then on."""

    _instance: TracingInstance
    _reader: EventReader
    _near: NearEvents
    _threads: LivingThreads = field(factory=LivingThreads)
    _living: np.ndarray | None = None
    name: str = "tracefs"
    drain_every_s: float = 0.2
    """Finding the events costs some milliseconds for each CPU, however few they are."""

    @classmethod
    def open(cls, selection: Selection, *, buffer_kib: int | None = None) -> Self:
        """Make an instance for *selection*. Raises MachineError, OSError."""
        near = NearEvents.of(selection)
        with ExitStack() as opened:
            instance = opened.enter_context(TracingInstance.make())
            reader = EventReader.of(instance.tracefs, instance.path)
            size = buffer_kib or buffer_kib_of(possible_cpus())
            instance.set_up(buffer_kib=size)
            instance.enable((*COLUMNS, *NAME_EVENTS))
            opened.pop_all()
        return cls(instance, reader, near)

    def begin(self) -> None:
        """Switch it on, and note the threads that live. Raises OSError."""
        self._near.look()
        self._instance.switch(is_on=True)
        self._living = self._threads.read()

    def end(self) -> None:
        """Switch it off. Recorded events can still be drained."""
        self._near.is_over = True
        self._instance.switch(is_on=False)

    def wait(self, seconds: float, most: int) -> None:  # noqa: ARG002 - it cannot know
        """Wait until the next drain, *seconds* at most."""
        time.sleep(min(self.drain_every_s, seconds))

    def is_due(self, most: int) -> bool:  # noqa: ARG002 - it cannot know
        """Return True: only a drain shows how much there is."""
        return True

    def drain(self) -> Drained:
        """Return what was recorded since the last drain."""
        events: dict[int, np.ndarray] = {}
        named = [np.zeros(0, NAME)]
        with self._near.drain() as near:
            for cpu in self._instance.cpus:
                events[cpu] = self._read(cpu, named)
            for each in events.values():
                each["tgid"] = self._tgids(each)
            events = near.kept(events)
        names = end_to_end(named)
        names = names[np.argsort(names["ns"], kind="stable")]
        if self._living is not None:
            names, self._living = np.concatenate([self._living, names]), None
        self._near.mark(names)
        return Drained({cpu: each for cpu, each in events.items() if len(each)}, names)

    def losses(self) -> Losses:
        """Return what found no room so far. Raises OSError."""
        return Losses(self._instance.lost())

    def close(self) -> None:
        """Remove the instance. A second call does nothing."""
        self._instance.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, cpu: int, named: list[np.ndarray]) -> np.ndarray:
        """Return the events of a CPU, and add the names to *named*.

        While it records, the buffer may fill as fast as it is read here.
        """
        parts = [np.zeros(0, SCHED_EVENT)]
        page_bytes = self._reader.pages.bytes
        while content := self._instance.read(cpu, page_bytes, PART_BYTES):
            found = self._reader.read(content, cpu)
            parts.append(found.events)
            named.append(as_names(self._rows(found)))
            is_last = len(content) < PART_BYTES // page_bytes * page_bytes
            if is_last or (len(parts) > MOST_PARTS and not self._near.is_over):
                break
        return end_to_end(parts)

    def _rows(self, found: Found) -> list[Row]:
        rows = [self._take(event) for event in found.names]
        last_ns = int(found.events["ns"][-1]) if len(found.events) else 0
        rows += [self._threads.know(tid, comm, last_ns) for tid, comm in found.comms.items()]
        return [row for row in rows if row is not None]

    def _take(self, event: NameEvent) -> Row | None:
        values, ns, threads = _Values(event), event.ns, self._threads
        match event.event:
            case "task/task_newtask":
                parent, child = values.number("common_pid"), values.number("pid")
                is_thread = bool(values.number("clone_flags") & CLONE_THREAD)
                self._near.fork(parent, child)
                return threads.fork(parent, child, values.text("comm"), is_thread=is_thread, ns=ns)
            case "task/task_rename":
                tid = values.number("pid", values.number("common_pid"))
                return threads.rename(tid, values.text("newcomm"), ns)
            case "sched/sched_process_exec":
                return threads.execute(values.number("pid"), values.number("old_pid"), ns)
            case "sched/sched_process_exit":
                return threads.end(values.number("pid"), values.text("comm"), ns)
        return None

    def _tgids(self, events: np.ndarray) -> np.ndarray:
        is_thread = events["kind"] <= Kind.MIGRATION
        tids = np.where(is_thread & (events["next"] < MOST_TIDS), events["next"], 0)
        tgids: np.ndarray = self._threads.tgids[tids]
        return tgids


class _Values:
    def __init__(self, event: NameEvent) -> None:
        self._values = event.values

    def number(self, name: str, default: int = 0) -> int:
        value = self._values.get(name, default)
        return value if isinstance(value, int) else default

    def text(self, name: str) -> bytes:
        value = self._values.get(name, b"")
        return value if isinstance(value, bytes) else b""


def buffer_kib_of(cpus: int) -> int:
    """Return the size of the buffer of each of *cpus*."""
    return max(LEAST_BUFFER_KIB, ALL_BUFFERS_KIB // cpus)
