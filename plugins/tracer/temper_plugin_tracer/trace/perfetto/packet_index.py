"""The first pass over a trace: where its bundles of events are, and its facts beside them."""

from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

import numpy as np
from attrs import define, evolve, field

from temper_plugin_tracer.trace.perfetto.decoding import decode_bundle
from temper_plugin_tracer.trace.perfetto.fields import TRACE_PACKET, Compact, Packet, Roster
from temper_plugin_tracer.trace.perfetto.own_records import facts_from, machine_from
from temper_plugin_tracer.trace.perfetto.scanning import (
    MOST_VARINT,
    Buffer,
    DamagedError,
    fields,
    read_varint,
    signed,
    unpacked,
)
from temper_plugin_tracer.trace.roster import CaptureFacts, TracedMachine, TracedThread

__all__ = [
    "CompressedPacketsError",
    "PacketIndex",
    "index_packets",
    "machine_of",
    "roster_of",
    "whole_end",
]

MOST_CPU = 0xFFFF
MOST_THREADS = 1 << 22
"""PID_MAX_LIMIT of 64-bit kernels. Each thread takes four bytes of a column at most."""
UTSNAME_ORDER = (1, 3, 2, 4)
"""Fields of Utsname: sysname, release, version, machine."""


class CompressedPacketsError(Exception):
    """The trace has packets that are compressed."""


@define
class PacketIndex:
    """The results of the first pass.

    Attributes:
        starts: Offset of each bundle.
        ends: Offset of its end.
        first_ns: Time of its first event.
        cut: What cut the trace short, or "".

    """

    starts: "array[int]" = field(factory=lambda: array("Q"))
    ends: "array[int]" = field(factory=lambda: array("Q"))
    first_ns: "array[int]" = field(factory=lambda: array("Q"))
    threads: dict[int, TracedThread] = field(factory=dict)
    names: dict[int, str] = field(factory=dict)
    processes: dict[int, str] = field(factory=dict)
    process_of: dict[int, int] = field(factory=dict)
    utsname: tuple[str, ...] = ()
    cpus: set[int] = field(factory=set)
    machine: TracedMachine | None = None
    facts: CaptureFacts | None = None
    packets: int = 0
    cut: str = ""

    @property
    def is_own(self) -> bool:
        """Whether Temper wrote the trace: its threads are named apart from the events."""
        return bool(self.threads) or self.machine is not None


def index_packets(data: Buffer) -> PacketIndex:
    """Return the index of a trace. Raises DamagedError, CompressedPacketsError."""
    index = PacketIndex()
    for start, at, end in _packets(data):
        if end > len(data):
            index.cut = f"the file ends within the packet at byte {start}"
            break
        _read_packet(index, data, at, end)
        index.packets += 1
    return index


def whole_end(data: Buffer) -> int:
    """Return where the last whole packet of a trace ends. Raises DamagedError."""
    return max((end for _, _, end in _packets(data) if end <= len(data)), default=0)


def _packets(data: Buffer) -> Iterator[tuple[int, int, int]]:
    """Yield the start, the content and the end of each packet. The last one may be cut short."""
    at = 0
    while at < len(data):
        start = at
        if data[start] != TRACE_PACKET << 3 | 2:
            raise DamagedError(start, "no packet of a Perfetto trace")
        try:
            size, at = read_varint(data, start + 1, len(data))
        except DamagedError:
            if len(data) - start > MOST_VARINT:
                raise
            yield start, start, len(data) + 1
            return
        yield start, at, at + size
        at += size


def _read_packet(index: PacketIndex, data: Buffer, at: int, end: int) -> None:
    for number, value, stop in fields(data, at, end):
        if not stop:
            continue
        if number == Packet.COMPRESSED_PACKETS:
            raise CompressedPacketsError
        reader = _READERS.get(number)
        if reader is None:
            continue
        try:
            reader(index, data, value, stop)
        except DamagedError:
            raise
        except (ValueError, TypeError, KeyError, LookupError, RecursionError) as error:
            raise DamagedError(value, f"field {number}: {error}") from error


def _read_bundle(index: PacketIndex, data: Buffer, at: int, end: int) -> None:
    if index.is_own:
        cpu, first = _first_of(data, at, end)
    else:
        bundle = decode_bundle(data, at, end)
        index.names.update(bundle.names)
        cpu, first = bundle.cpu, int(bundle.events["ns"][0]) if len(bundle.events) else None
    index.cpus.add(cpu)
    if first is not None:
        index.starts.append(at)
        index.ends.append(end)
        index.first_ns.append(first)


def _first_of(data: Buffer, at: int, end: int) -> tuple[int, int | None]:
    """Return the CPU and the time of the first event, where all events are by boottime."""
    cpu, firsts = 0, []
    singles: set[int] = set()
    for number, value, stop in fields(data, at, end):
        if number == 1:
            cpu = value
        elif number == 4 and stop:  # noqa: PLR2004 - FtraceEventBundle.compact_sched
            firsts += [
                read_varint(data, start, last)[0]
                for inner, start, last in fields(data, value, stop)
                if inner in {Compact.SWITCH_NS, Compact.WAKING_NS} and last > start
            ]
        elif number == 2 and stop:  # noqa: PLR2004 - FtraceEventBundle.event
            ns, kind = _glance(data, value, stop)
            # Events are by kind, and in time order within a kind.
            if kind not in singles:
                singles.add(kind)
                firsts.append(ns)
    if cpu > MOST_CPU:
        raise DamagedError(at, f"an event of CPU {cpu}")
    return cpu, min(firsts, default=None)


def _glance(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """Return the time and the kind of an FtraceEvent."""
    ns = kind = 0
    for number, value, stop in fields(data, at, end):
        if stop:
            kind = number
        elif number == 1:
            ns = value
    return ns, kind


def _read_process_tree(index: PacketIndex, data: Buffer, at: int, end: int) -> None:
    for number, start, stop in fields(data, at, end):
        if not stop:
            continue
        values = _fields_by_number(data, start, stop, text=3 if number == 1 else 2)
        if number == 1 and 1 in values and 3 in values:  # noqa: PLR2004 - Process.cmdline
            index.processes[values[1]] = values[3]
            index.process_of.setdefault(values[1], values[1])
        elif number == 2 and 1 in values:  # noqa: PLR2004 - ProcessTree.threads
            index.process_of[values[1]] = values.get(3, 0)
            if 2 in values:  # noqa: PLR2004 - Thread.name
                index.names[values[1]] = values[2]


def _fields_by_number(data: Buffer, at: int, end: int, *, text: int) -> dict[int, Any]:
    """Return the first value of each field. That of field *text* is bytes, the others numbers."""
    values: dict[int, Any] = {}
    for number, value, stop in fields(data, at, end):
        if (number == text) == bool(stop):
            content = bytes(data[value:stop]).decode("utf-8", "replace") if stop else signed(value)
            values.setdefault(number, content)
    return values


def _read_system_info(index: PacketIndex, data: Buffer, at: int, end: int) -> None:
    for number, start, stop in fields(data, at, end):
        if number == 1 and stop:
            parts = {
                inner: bytes(data[first:last]).decode("utf-8", "replace")
                for inner, first, last in fields(data, start, stop)
                if last
            }
            index.utsname = tuple(parts.get(part, "") for part in UTSNAME_ORDER)


def _read_machine(index: PacketIndex, data: Buffer, at: int, end: int) -> None:
    index.machine = machine_from(bytes(data[at:end]))


def _read_facts(index: PacketIndex, data: Buffer, at: int, end: int) -> None:
    index.facts = facts_from(bytes(data[at:end]))


def _read_threads(index: PacketIndex, data: Buffer, at: int, end: int) -> None:
    texts: list[str] = []
    columns: dict[int, list[int]] = {}
    for number, start, stop in fields(data, at, end):
        if not stop:
            continue
        if number == Roster.TEXTS:
            texts.append(bytes(data[start:stop]).decode("utf-8", "replace"))
        else:
            column = columns.setdefault(number, [])
            if stop - start > 4 * MOST_THREADS or len(column) > MOST_THREADS:
                raise ValueError(f"more than {MOST_THREADS} threads")
            column.extend(unpacked(data, start, stop).view(np.int64).tolist())
    tids = list(accumulate(columns.get(Roster.TID, [])))
    zeros = [0] * len(tids)
    parts = (Roster.IS_SELECTED, *range(Roster.ABOVE_TGID, Roster.LAYER + 1))
    facts = [columns.get(part, zeros) for part in parts]
    for tid, is_selected, above_tgid, *places in zip(tids, *facts, strict=True):
        if min(places) < 0:
            raise ValueError("a text before the first one")
        name, process, pod, group, tier, layer = (texts[place] for place in places)
        index.threads[tid] = TracedThread(
            tid, tid - above_tgid, name, process, pod, group, tier, layer, bool(is_selected)
        )


def roster_of(index: PacketIndex) -> dict[int, TracedThread]:
    """Return the threads of a trace by id: as Temper wrote them, or as its packets name them."""
    if index.threads:
        return dict(index.threads)
    threads = {}
    for tid in sorted({*index.names, *index.process_of} - {0}):
        tgid = index.process_of.get(tid, 0)
        process = index.processes.get(tgid, "")
        name = index.names.get(tid) or (process if tid == tgid else "")
        threads[tid] = TracedThread(tid, tgid, name, process)
    return threads


def machine_of(index: PacketIndex) -> TracedMachine:
    """Return the machine as Temper wrote it, or as far as the packets describe it."""
    if index.machine is not None:
        return index.machine
    return evolve(TracedMachine(), utsname=index.utsname, cpus=tuple(sorted(index.cpus)))


_READERS: dict[int, Callable[[PacketIndex, Buffer, int, int], None]] = {
    Packet.FTRACE_EVENTS: _read_bundle,
    Packet.PROCESS_TREE: _read_process_tree,
    Packet.SYSTEM_INFO: _read_system_info,
    Packet.TEMPER_MACHINE: _read_machine,
    Packet.TEMPER_THREADS: _read_threads,
    Packet.TEMPER_FACTS: _read_facts,
}
