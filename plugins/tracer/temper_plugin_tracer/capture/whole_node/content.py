"""The content of a Perfetto trace, as far as the bounds of a capture let it be kept."""

from collections.abc import Iterator
from typing import Any

from attrs import define, field

from temper_plugin_tracer.capture.bounds import Bounds, Ending
from temper_plugin_tracer.trace.perfetto.decoding import decode_bundle
from temper_plugin_tracer.trace.perfetto.fields import TRACE_PACKET, Packet
from temper_plugin_tracer.trace.perfetto.scanning import DamagedError, fields, read_varint

FTRACE_STATS, TRACE_STATS = 34, 35
"""Fields of TracePacket."""
PHASE, CPU_STATS, END_OF_TRACE = 1, 2, 2
CPU, OVERRUN, DROPPED = 1, 3, 8
BUFFER_STATS, CHUNKS_DISCARDED = 1, 18
UNWRITTEN = 0
"""A byte of the space that was reserved for the trace."""
Buffer = Any


@define
class Content:
    """The beginning of a trace that fits the bounds.

    Attributes:
        bytes: Its size.
        events: The number of its events.
        cut_by: The bound that cut it, None if it is whole.
        lost: By CPU, events that the kernel had no room for.
        tids: The threads that run in it.

    """

    bytes: int = 0
    events: int = 0
    cut_by: Ending | None = None
    lost: dict[int, int] = field(factory=dict)
    tids: set[int] = field(factory=set)


def content_of(data: Buffer, bounds: Bounds) -> Content:
    """Read a trace. Raises DamagedError."""
    content = Content()
    for at, end in _packets(data):
        events, tids = 0, set()
        for number, value, stop in fields(data, at, end):
            if number == Packet.FTRACE_EVENTS and stop:
                found = decode_bundle(data, value, stop).events
                events += len(found)
                tids |= set(found["next"].tolist()) if len(found) else set()
            elif number == FTRACE_STATS and stop:
                _add_losses(content, data, value, stop)
            elif number == TRACE_STATS and stop and _is_full(data, value, stop):
                content.cut_by = Ending.BYTES
        if end > bounds.bytes or content.events + events > bounds.events:
            content.cut_by = Ending.BYTES if end > bounds.bytes else Ending.EVENTS
            break
        content.events += events
        content.tids |= tids
        content.bytes = end
    content.lost = {cpu: lost for cpu, lost in content.lost.items() if lost > 0}
    return content


def _packets(data: Buffer) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(data) and data[at] != UNWRITTEN:
        if data[at] != TRACE_PACKET << 3 | 2:
            raise DamagedError(at, "no packet of a Perfetto trace")
        size, begin = read_varint(data, at + 1, len(data))
        at = begin + size
        if at > len(data):
            raise DamagedError(begin, "the end within a packet")
        yield begin, at


def _add_losses(content: Content, data: Buffer, at: int, end: int) -> None:
    """Add the counts at the end, and subtract those at the beginning."""
    found = list(fields(data, at, end))
    is_end = any(
        number == PHASE and value == END_OF_TRACE for number, value, stop in found if not stop
    )
    for number, value, stop in found:
        if number != CPU_STATS or not stop:
            continue
        numbers = {inner: count for inner, count, last in fields(data, value, stop) if not last}
        lost = numbers.get(OVERRUN, 0) + numbers.get(DROPPED, 0)
        cpu = numbers.get(CPU, 0)
        content.lost[cpu] = content.lost.get(cpu, 0) + (lost if is_end else -lost)


def _is_full(data: Buffer, at: int, end: int) -> bool:
    """Whether a buffer of the service was full, so that later packets are missing."""
    for number, value, stop in fields(data, at, end):
        if number == BUFFER_STATS and stop:
            for inner, count, last in fields(data, value, stop):
                if inner == CHUNKS_DISCARDED and not last and count:
                    return True
    return False
