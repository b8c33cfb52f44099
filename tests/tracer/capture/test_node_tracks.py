"""Temper's own tracks, as trace_processor reads them."""

import io
import time

from attrs import evolve

from temper_core import Event, Layer, LayerKind
from temper_core.testing import make_snapshot
from temper_plugin_tracer.capture.bounds import Ending
from temper_plugin_tracer.capture.drained import Losses
from temper_plugin_tracer.capture.node_notes import event_note, look_of
from temper_plugin_tracer.capture.node_reading import NodeNotes
from temper_plugin_tracer.capture.node_tracks import write_tracks
from temper_plugin_tracer.capture.recording import Recorded
from temper_plugin_tracer.trace.perfetto.writer import TraceWriter
from tests.tracer.trace.trace_processor import TraceProcessor
from tests.tracer.trace.traces import BEGAN_NS, cpu_events, threads, written

END_NS = BEGAN_NS + 5_000
SLICES = """
select slice.ts, dur, slice.name from slice join track on track_id = track.id
where track.name = 'plan' order by slice.ts
"""


EVENTS = """
select slice.ts, slice.name, string_value from slice join track on track_id = track.id
left join args on args.arg_set_id = slice.arg_set_id and args.flat_key = 'debug.reason'
where track.name = 'events' order by slice.ts
"""


def recorded_from(began_ns, end_ns):
    return Recorded(began_ns, end_ns, Ending.SECONDS, 1, 1, Losses())


def test_an_event_of_the_agent_is_an_instant_at_its_time():
    out = io.BytesIO(written({0: cpu_events(0, 300, 4)}, threads(4)))
    out.seek(0, io.SEEK_END)
    entered = event_note(Event(7, 0.0, "safe_mode_entered", "cli", "asked")) | {"ns": BEGAN_NS + 9}
    before, after = entered | {"ns": BEGAN_NS - 1}, entered | {"ns": END_NS + 1}

    write_tracks(
        TraceWriter(out),
        NodeNotes(events=(before, entered, after)),
        recorded_from(BEGAN_NS, END_NS),
    )

    processor = TraceProcessor(out.getvalue())
    assert processor.ask(EVENTS) == [(BEGAN_NS + 9, "safe_mode_entered: cli", "asked")]
    processor.close()


def test_the_time_of_an_event_is_of_the_clock_of_the_trace():
    age_s = 3.0
    before_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    note = event_note(Event(1, time.time() - age_s, "plan_changed"))

    assert abs(note["ns"] - (before_ns - age_s * 1e9)) < 1e9


def look(ns, generation, cpus=(0,)):
    layers = {Layer("critical", LayerKind.CONFINED, ((),)): cpus} if generation else {}
    status = evolve(make_snapshot().status, generation=generation)
    return look_of(make_snapshot(layers=layers, status=status)) | {"ns": ns}


def test_a_swap_is_where_one_plan_follows_another():
    out = io.BytesIO(written({0: cpu_events(0, 300, 4)}, threads(4)))
    out.seek(0, io.SEEK_END)
    looks = [
        look(0, 0),
        look(BEGAN_NS + 1_000, 7),
        look(BEGAN_NS + 2_000, 7),
        look(BEGAN_NS + 3_000, 8),
    ]

    write_tracks(TraceWriter(out), NodeNotes(tuple(looks)), recorded_from(BEGAN_NS, END_NS))

    processor = TraceProcessor(out.getvalue())
    assert processor.ask(SLICES) == [
        (BEGAN_NS + 1_000, 2_000, "generation 7"),
        (BEGAN_NS + 3_000, 2_000, "generation 8"),
    ]
    processor.close()
