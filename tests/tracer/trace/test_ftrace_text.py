"""Ftrace text of each program that prints it, and of a real recording."""

import gzip
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import InputError
from temper_plugin_tracer.trace import ftrace_text
from temper_plugin_tracer.trace.analyzing import analyze
from temper_plugin_tracer.trace.events import PREEMPTED, Kind
from temper_plugin_tracer.trace.ftrace_text import FtraceText
from temper_plugin_tracer.trace.reading import open_trace
from tests.tracer.trace.scenes import analyzed, pairs_by_tid
from tests.tracer.trace.slow_analysis import SlowAnalysis

SAMPLE = Path(__file__).parent / "samples" / "perf-script.txt"
TRACEFS = """# tracer: nop
#
          <idle>-0       [001] d..2.   100.000001: sched_switch: prev_comm=swapper/1 prev_pid=0 \
prev_prio=120 prev_state=R ==> next_comm=a b-c next_pid=12 next_prio=98
 a b-c-12      ( 12) [001] d.h3.   100.000003: sched_waking: comm=web pid=13 prio=120 target_cpu=002
CPU:1 [LOST 7 EVENTS]
           a b-c-12      [001] d..3.   100.000004: sched_migrate_task: comm=web pid=13 prio=120 \
orig_cpu=2 dest_cpu=3
           a b-c-12      [001] d.h1.   100.000005: irq_handler_entry: irq=24 name=virtio0
           a b-c-12      [001] d.h1.   100.000006: irq_handler_exit: irq=24 ret=handled
           a b-c-12      [001] ..s1.   100.000007: softirq_entry: vec=3 [action=NET_RX]
           a b-c-12      [001] ..s1.   100.000008: softirq_exit: vec=3 [action=NET_RX]
           a b-c-12      [001] d..2.   100.000009: sched_switch: prev_comm=a b-c prev_pid=12 \
prev_prio=98 prev_state=R+ ==> next_comm=web next_pid=13 next_prio=120
"""
TRACE_CMD = """cpus=2
          <idle>-0     [001]   100.000001: sched_switch:         swapper/1:0 [120] R ==> \
web:13 [120]
             web-13    [001]   100.000002: sched_waking:         db:14 [120] CPU:000
             web-13    [001]   100.000003: sched_switch:         web:13 [120] D ==> \
swapper/1:0 [120]
CPU:0 [5 EVENTS DROPPED]
"""


def read(tmp_path, text):
    path = tmp_path / "trace.txt"
    path.write_text(text)
    trace = FtraceText(path)
    return trace, np.concatenate([*trace.blocks()])


def test_text_of_tracefs_is_read(tmp_path):
    trace, found = read(tmp_path, TRACEFS)

    assert found["kind"].tolist() == [1, 2, 3, 4, 5, 6, 7, 1]
    assert found["ns"][0] == 100_000_001_000
    assert found["prio"][0] == 98
    assert (found["prev"][1], found["next"][1], found["target"][1]) == (12, 13, 2)
    assert found["flags"].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert (found["prev"][2], found["target"][2]) == (2, 3)
    assert found["state"][-1] == PREEMPTED
    assert {thread.tid: thread.name for thread in trace.threads} == {12: "a b-c", 13: "web"}
    assert trace.losses == {1: 7}


def test_text_of_trace_cmd_is_read(tmp_path):
    trace, found = read(tmp_path, TRACE_CMD)

    assert found["kind"].tolist() == [Kind.SWITCH, Kind.WAKING, Kind.SWITCH]
    assert found["state"].tolist() == [0, 0, 2]
    assert (found["prev"][1], found["next"][1], found["target"][1]) == (13, 14, 0)
    assert trace.losses == {0: 5}


def test_a_real_recording_gives_what_the_slow_analysis_gives():
    block = np.concatenate([*open_trace(SAMPLE).blocks()])
    slow = SlowAnalysis()
    for event in block:
        slow.add(event)

    quick = analyzed(block, size=64)

    assert len(block) == 400
    assert pairs_by_tid(quick, quick.blockers) == dict(slow.blockers)
    for tid, thread in slow.threads.items():
        row = quick.threads.row(tid)
        assert int(quick.threads.run_ns[row]) == thread.sums["run_ns"]
        assert int(quick.threads.waits[row]) == len(thread.waits)


def test_packed_text_is_read_as_the_plain_one(tmp_path):
    packed = tmp_path / "trace.gz"
    packed.write_bytes(gzip.compress(SAMPLE.read_bytes()))

    assert analyze(open_trace(packed)) == analyze(open_trace(SAMPLE))


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x1f\x8bnothing", b"\0" * 100])
def test_a_file_that_is_no_trace_is_refused(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)

    with pytest.raises(InputError, match=str(path)):
        open_trace(path)


@pytest.mark.parametrize("piece", [" ", "- ", "1 ", "x 1 [0] "])
def test_a_long_line_takes_no_cubic_time(tmp_path, piece):
    path = tmp_path / "x"
    path.write_text(piece * 1_500)

    began = time.thread_time()
    with pytest.raises(InputError, match="neither"):
        open_trace(path)
    assert time.thread_time() - began < 2


def test_a_cut_packed_file_is_refused(tmp_path):
    path = tmp_path / "x.gz"
    whole = gzip.compress(SAMPLE.read_bytes() * 20, compresslevel=1)
    path.write_bytes(whole[: len(whole) - 100])

    with pytest.raises(InputError):
        analyze(open_trace(path))


@given(st.data())
def test_damaged_text_gives_events_or_an_input_error(tmp_path_factory, data):
    lines = SAMPLE.read_bytes().splitlines(keepends=True)[:20]
    whole = b"".join(lines)
    place = data.draw(st.integers(0, len(whole)))
    path = tmp_path_factory.mktemp("damaged") / "x"
    path.write_bytes(whole[:place] + data.draw(st.binary(max_size=20)) + whole[place + 3 :])

    try:
        analyze(open_trace(path))
    except InputError as error:
        assert str(error)  # noqa: PT017 - any other error is the failure


def test_a_number_that_no_field_holds_is_refused(tmp_path):
    with pytest.raises(InputError, match="too large"):
        read(tmp_path, TRACE_CMD.replace("CPU:000", "CPU:99999999"))


def test_a_packed_file_that_unpacks_to_gigabytes_of_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(ftrace_text, "LEAST_UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(SAMPLE.read_bytes() + b" " * (16 << 20)))

    with pytest.raises(InputError, match="more than 64 times its size when it is unpacked"):
        list(open_trace(path).blocks())
