"""Temper's own tracks, as trace_processor reads them."""

import io

from attrs import evolve

from temper_core import Layer, LayerKind
from temper_core.testing import make_snapshot
from temper_plugin_tracer.capture.bounds import Ending
from temper_plugin_tracer.capture.drained import Losses
from temper_plugin_tracer.capture.node_notes import look_of
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

    write_tracks(
        TraceWriter(out), looks, Recorded(BEGAN_NS, END_NS, Ending.SECONDS, 1, 1, Losses())
    )

    processor = TraceProcessor(out.getvalue())
    assert processor.ask(SLICES) == [
        (BEGAN_NS + 1_000, 2_000, "generation 7"),
        (BEGAN_NS + 3_000, 2_000, "generation 8"),
    ]
    processor.close()
