"""Encodes a recording as a trace for Perfetto, within its bounds."""

import io
import time
from collections.abc import Iterable
from typing import BinaryIO, cast

import numpy as np
from attrs import frozen

from temper_plugin_tracer.capture.bounds import Ending
from temper_plugin_tracer.capture.drained import gathered
from temper_plugin_tracer.capture.kernel_layout import names_of
from temper_plugin_tracer.capture.node_tracks import write_tracks
from temper_plugin_tracer.capture.pieces import Events, count_of, first_events, pieces
from temper_plugin_tracer.capture.raw_file import RawFile
from temper_plugin_tracer.capture.recording import Recorded
from temper_plugin_tracer.capture.staged_output import StagedOutput
from temper_plugin_tracer.capture.trace_context import TraceContext
from temper_plugin_tracer.capture.traced_records import (
    capture_facts,
    traced_machine,
    traced_threads,
)
from temper_plugin_tracer.capture.who_is_who import MOST_TIDS, SeenThreads
from temper_plugin_tracer.trace.events import chosen
from temper_plugin_tracer.trace.perfetto.writer import TraceWriter
from temper_plugin_tracer.trace.roster import CaptureFacts, TracedThread

PIECE_EVENTS = 131_072
LEAST_PIECE = 1_024
PIECES_OF_A_FILE = 32
BYTES_OF_EVENT = 9
MOST_NAMED, BYTES_OF_THREAD = 65_536, 256
"""Threads that a trace names, beside the first ones of their processes, and the size of each in
it, at most. Others have their ids only."""
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6
"""Ids of Perfetto's builtin clocks."""
FACTS_SLACK = 256
"""Bytes by which the facts may grow between their first writing and the last."""


@frozen
class Encoding:
    """A recording to encode."""

    raw: RawFile
    recorded: Recorded
    context: TraceContext


@frozen
class Outcome:
    """A whole trace: its size and content, and what ended it.

    ``unnamed`` counts the threads of the events beyond ``MOST_NAMED``.
    """

    bytes: int
    events: int
    threads: int
    unnamed: int
    ending: Ending


class TooSmallError(OSError):
    """The bound on bytes leaves no room for the names of the threads."""


def encode(encoding: Encoding, descriptor: int) -> Outcome:
    """Write the trace to *descriptor*. Raises OSError, also if not even the names fit."""
    context, recorded = encoding.context, encoding.recorded
    output = StagedOutput(descriptor, context.bounds.bytes)
    writer = TraceWriter(cast("BinaryIO", output))
    threads, unnamed = _threads(encoding)
    writer.machine(traced_machine(context.cores), _clocks())
    writer.threads(threads, recorded.began_ns)
    write_tracks(writer, context.notes, recorded)
    reserve = _size_of_facts(capture_facts(context, recorded, recorded.ending)) + FACTS_SLACK
    if not output.commit(reserve=reserve):
        raise TooSmallError(0, f"the names of {len(threads)} threads exceed the bound on bytes")
    is_named = np.zeros(MOST_TIDS, np.bool_)
    is_named[[thread.tid for thread in threads]] = True
    events, ending = _write_events(encoding, writer, output, is_named, reserve)
    writer.facts(capture_facts(context, recorded, ending))
    output.commit()
    return Outcome(output.size, events, len(threads), unnamed, ending)


def _write_events(
    encoding: Encoding,
    writer: TraceWriter,
    output: StagedOutput,
    is_named: np.ndarray,
    reserve: int,
) -> tuple[int, Ending]:
    """Write the events piece by piece until a bound is reached. Return count and ending."""
    bounds, written = encoding.context.bounds, 0
    names: dict[int, str] = {}
    for piece in _pieces(encoding, is_named, names):
        cut = first_events(piece, bounds.events - written)
        for cpu, events in cut.items():
            writer.events(cpu, events, names)
        if not output.commit(reserve=reserve):
            return written, Ending.BYTES
        written += count_of(cut)
        if count_of(cut) < count_of(piece):
            return written, Ending.EVENTS
    return written, encoding.recorded.ending


def _pieces(encoding: Encoding, is_named: np.ndarray, names: dict[int, str]) -> Iterable[Events]:
    """Yield the events in pieces, after the names that were noted before their end."""
    fitting = encoding.context.bounds.bytes // BYTES_OF_EVENT // PIECES_OF_A_FILE
    most = max(LEAST_PIECE, min(PIECE_EVENTS, fitting))
    for drained in gathered(encoding.raw.drains(), most):
        if drained.names is not None:
            wanted = is_named[drained.names["tid"] % MOST_TIDS]
            names.update(names_of(chosen(drained.names, wanted)))
        yield from pieces(drained, most)


def _threads(encoding: Encoding) -> tuple[list[TracedThread], int]:
    """Return the threads to name, and how many of the events are left without a name."""
    seen = SeenThreads()
    for drained in gathered(encoding.raw.drains(), PIECE_EVENTS):
        seen.add(drained.events.values(), drained.names)
    context = encoding.context
    most = min(MOST_NAMED, context.bounds.bytes // BYTES_OF_THREAD)
    threads = traced_threads(seen, context.notes.memberships, most)
    return threads, max(0, seen.count - most)


def _clocks() -> dict[int, int]:
    return {
        BOOTTIME: time.clock_gettime_ns(time.CLOCK_BOOTTIME),
        MONOTONIC: time.clock_gettime_ns(time.CLOCK_MONOTONIC),
        REALTIME: time.clock_gettime_ns(time.CLOCK_REALTIME),
    }


def _size_of_facts(facts: CaptureFacts) -> int:
    scratch = io.BytesIO()
    TraceWriter(scratch).facts(facts)
    return len(scratch.getvalue())
