"""Traces read back: Temper's own, Perfetto's recordings, damaged and cut ones."""

import gzip
import io
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from temper_core import InputError
from temper_plugin_tracer.trace.events import SCHED_EVENT, Kind
from temper_plugin_tracer.trace.perfetto.reader import PerfettoTrace
from temper_plugin_tracer.trace.perfetto.writer import TraceWriter
from temper_plugin_tracer.trace.roster import TracedThread
from tests.tracer.trace.traces import (
    BEGAN_NS,
    FACTS,
    MACHINE,
    cpu_events,
    in_time_order,
    threads,
    written,
)

THREADS = 50
Opened = Callable[[bytes], PerfettoTrace]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Open a trace of the bytes given."""

    def open_bytes(content: bytes) -> PerfettoTrace:
        path = tmp_path / "trace"
        path.write_bytes(content)
        return PerfettoTrace(path)

    return open_bytes


@pytest.fixture(scope="module")
def by_cpu() -> dict[int, np.ndarray]:
    """Events of four CPUs."""
    return {cpu: cpu_events(cpu, 3_000, THREADS) for cpu in range(4)}


def all_events(trace: PerfettoTrace) -> np.ndarray:
    """Return the events of all blocks."""
    return np.concatenate([np.empty(0, SCHED_EVENT), *trace.blocks()])


@pytest.mark.parametrize("pieces", [1, 7])
def test_what_was_written_is_read_back(
    opened: Opened, by_cpu: dict[int, np.ndarray], pieces: int
) -> None:
    """Events, threads, machine and facts are equal."""
    trace = opened(written(by_cpu, threads(THREADS), pieces=pieces))
    assert list(trace.threads) == threads(THREADS)
    assert trace.machine == MACHINE
    assert trace.facts == FACTS
    assert trace.cut == ""
    assert np.array_equal(all_events(trace), in_time_order(by_cpu))
    assert np.array_equal(all_events(trace), in_time_order(by_cpu)), "a second reading"


def test_what_perfetto_would_infer_wrongly_is_read_back(
    opened: Opened, by_cpu: dict[int, np.ndarray]
) -> None:
    """Lost switches, and threads of another process than the roster says, do not change events."""
    gaps = {cpu: events[np.arange(len(events)) % 5 != 0] for cpu, events in by_cpu.items()}
    for events in gaps.values():
        of_threads = events["kind"] <= Kind.WAKING
        events["tgid"][of_threads & (events["next"] % 7 == 0)] = 999
    assert np.array_equal(all_events(opened(written(gaps, threads(THREADS)))), in_time_order(gaps))


TIDS = st.sampled_from([0, 1, 2, 127, 128, 16_383, 16_384, (1 << 22) - 1, 1 << 22, (1 << 32) - 1])
STEPS_NS = st.integers(1, 300) | st.integers(1, 1 << 33)


@st.composite
def any_cpu_events(draw: st.DrawFn) -> np.ndarray:
    """Return events of CPU 3 with numbers at the edges of their ranges, in any order of kinds."""
    rows, ns = [], draw(st.integers(1, 1 << 60))
    for kind in draw(st.lists(st.sampled_from(Kind), max_size=40)):
        ns += draw(STEPS_NS)
        of_thread = kind <= Kind.MIGRATION
        target = draw(st.integers(0, 65_535)) if kind in {Kind.WAKING, Kind.MIGRATION} else 0
        rows.append((
            *(ns, draw(TIDS) if of_thread else 0, draw(TIDS)),
            *(draw(TIDS) if kind <= Kind.WAKING else 0, 3, target),
            draw(st.sampled_from([0, 1, 2, 0x80, 0x100])) if kind == Kind.SWITCH else 0,
            draw(st.integers(-1, 139)) if of_thread else 0,
            *(kind, draw(st.integers(0, 1)) if kind == Kind.WAKING else 0, 0),
        ))  # fmt: skip
    return np.array(rows, SCHED_EVENT)


@settings(max_examples=200, deadline=None)
@given(any_cpu_events(), st.integers(1, 4))
def test_any_events_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, events: np.ndarray, pieces: int
) -> None:
    """No number is changed by the encoding, however the events were cut."""
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(written({3: events}, [], pieces=pieces))
    assert all_events(PerfettoTrace(path)).tolist() == events.tolist()


@given(st.lists(st.tuples(TIDS, TIDS, st.booleans()), unique_by=lambda found: found[0]))
def test_threads_in_any_order_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, ids: list[tuple[int, int, bool]]
) -> None:
    """A process may have a greater id than its threads, and labels may be absent."""
    known = [
        TracedThread(tid, tgid, f"name {tid}", is_selected=is_selected)
        for tid, tgid, is_selected in ids
        if tid
    ]
    path = tmp_path_factory.getbasetemp() / "threads"
    path.write_bytes(written({}, known))
    assert PerfettoTrace(path).threads == tuple(known)


def test_blocks_are_bounded_and_in_time_order(opened: Opened) -> None:
    """A block has at most 65,536 events, and follows the block before it."""
    events = np.tile(cpu_events(0, 1_000, THREADS), 200)
    events["ns"] = BEGAN_NS + np.arange(len(events))
    blocks = list(opened(written({0: events}, threads(THREADS))).blocks())
    assert max(map(len, blocks)) <= 65_536
    assert sum(map(len, blocks)) == 200_000
    assert all((np.diff(np.concatenate(blocks)["ns"].astype(np.int64)) > 0).tolist())


def test_memory_does_not_grow_with_events(tmp_path: Path) -> None:
    """Four times the events take no more memory to read, beside the index."""

    def peak(repeats: int) -> int:
        path = tmp_path / f"{repeats}"
        one = cpu_events(0, 10_000, THREADS)
        with path.open("wb") as file:
            writer = TraceWriter(file)
            writer.machine(MACHINE, {6: BEGAN_NS})
            writer.threads(threads(THREADS), BEGAN_NS)
            for repeat in range(repeats):
                for cpu in range(4):
                    part = one.copy()
                    part["cpu"] = cpu
                    part["ns"] += np.uint64(repeat * 60_000 * 64 * len(one) + cpu)
                    writer.events(cpu, part, {})
        tracemalloc.start()
        count = sum(map(len, PerfettoTrace(path).blocks()))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == repeats * 4 * len(one)
        return most

    assert peak(8) < 1.2 * peak(2)


def perfetto_recording(*, compact: bool) -> protos.Trace:
    """Return a recording as Perfetto makes it: a thread wakes another one, which runs."""
    trace = protos.Trace()
    trace.packet.add().system_info.utsname.release = "6.8"
    tree = trace.packet.add().process_tree
    tree.processes.add(pid=10, ppid=1, cmdline=["/usr/bin/server", "--port"])
    tree.threads.add(tid=11, tgid=10)
    bundle = trace.packet.add().ftrace_events
    bundle.cpu = 3
    if compact:
        sched = bundle.compact_sched
        sched.intern_table.extend(["io", "swapper/3"])
        sched.switch_timestamp.extend([1_000, 300])
        sched.switch_prev_state.extend([0, 1])
        sched.switch_next_pid.extend([11, 0])
        sched.switch_next_prio.extend([120, 120])
        sched.switch_next_comm_index.extend([0, 1])
        sched.waking_timestamp.extend([1_100])
        sched.waking_pid.extend([12])
        sched.waking_target_cpu.extend([2])
        sched.waking_prio.extend([98])
        sched.waking_comm_index.extend([0])
        sched.waking_common_flags.extend([0x08])
        return trace
    switch = bundle.event.add(timestamp=1_000, pid=0).sched_switch
    switch.next_comm, switch.next_pid, switch.next_prio = "io", 11, 120
    waking = bundle.event.add(timestamp=1_100, pid=11, common_flags=0x08).sched_waking
    waking.comm, waking.pid, waking.prio, waking.target_cpu = "io", 12, 98, 2
    switch = bundle.event.add(timestamp=1_300, pid=11).sched_switch
    switch.prev_comm, switch.prev_pid, switch.prev_state, switch.next_prio = "io", 11, 1, 120
    wakeup = trace.packet.add().ftrace_events
    wakeup.cpu = 2
    wakeup.event.add(timestamp=1_150, pid=0).sched_wakeup.pid = 12
    return trace


@pytest.mark.parametrize("compact", [True, False])
def test_recordings_of_perfetto_are_read(opened: Opened, compact: bool) -> None:
    """Columns and single messages give equal events. A wake-up counts once."""
    trace = opened(perfetto_recording(compact=compact).SerializeToString())
    events = all_events(trace)
    names = ["ns", "kind", "cpu", "prev", "next", "target", "state", "prio", "flags", "tgid"]
    assert events[names].tolist() == [
        (1_000, Kind.SWITCH, 3, 0, 11, 0, 0, 120, 0, 10),
        (1_100, Kind.WAKING, 3, 11, 12, 2, 0, 98, 1, 0),
        (1_300, Kind.SWITCH, 3, 11, 0, 0, 1, 120, 0, 0),
    ]
    assert trace.facts is None
    assert trace.machine.utsname[1] == "6.8"
    assert trace.machine.cpus == ((3,) if compact else (2, 3))
    told = {each.tid: (each.tgid, each.name, each.process) for each in trace.threads}
    assert told == {
        10: (10, "/usr/bin/server", "/usr/bin/server"),
        11: (10, "io", "/usr/bin/server"),
        12: (0, "io", ""),
    }


def test_a_wakeup_without_a_waking_is_a_waking(opened: Opened) -> None:
    """A recording of sched_wakeup only has its wake-ups."""
    trace = protos.Trace()
    for ns, field in ((5, "sched_wakeup"), (9, "sched_wakeup_new")):
        bundle = trace.packet.add().ftrace_events
        event = bundle.event.add(timestamp=ns, pid=7)
        getattr(event, field).pid = 12
    events = all_events(opened(trace.SerializeToString()))
    assert events[["ns", "kind", "prev", "next"]].tolist() == [
        (5, Kind.WAKING, 7, 12),
        (9, Kind.WAKING, 7, 12),
    ]


def test_packed_recordings_are_read(opened: Opened) -> None:
    """A gzip file and compressed packets are read like plain ones."""
    plain = perfetto_recording(compact=True).SerializeToString()
    expected = all_events(opened(plain))
    assert np.array_equal(all_events(opened(gzip.compress(plain))), expected)
    packed = protos.Trace()
    packed.packet.add().compressed_packets = zlib.compress(plain)
    assert np.array_equal(all_events(opened(packed.SerializeToString())), expected)
    nested = protos.Trace()
    nested.packet.add().compressed_packets = zlib.compress(packed.SerializeToString())
    with pytest.raises(InputError, match="compressed packets within compressed packets"):
        opened(nested.SerializeToString())


def test_a_cut_file_is_read_up_to_the_cut(opened: Opened, by_cpu: dict[int, np.ndarray]) -> None:
    """What was whole is read, and ``cut`` says where it ends."""
    whole = written(by_cpu, threads(THREADS), pieces=10)
    trace = opened(whole[: len(whole) * 2 // 3])
    events = all_events(trace)
    assert 0 < len(events) < 12_000
    assert trace.cut.startswith("the file ends within the packet at byte ")
    assert list(trace.threads) == threads(THREADS)
    assert trace.facts is None
    packed = opened(gzip.compress(whole)[: len(whole) // 4])
    assert packed.cut.startswith("the gzip stream ends too early, at byte ")
    assert len(all_events(packed))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it has no packet"),
        (b"\x7fELF and more", "damaged at byte 0: no packet of a Perfetto trace"),
        (b"\x0a\x05abc", "the file ends within the packet at byte 0"),
        (b"\x0a\x02\x0a\x05", "exceeds its message"),
        (b"\x0a\x02\x0f\x05", "wire type 7"),
        (b"\x1f\x8bnonsense", "gzip"),
    ],
)
def test_what_is_no_trace_is_told(opened: Opened, content: bytes, said: str) -> None:
    """The error names the file and what is wrong."""
    with pytest.raises(InputError, match=said) as caught:
        opened(content)
    assert "trace: " in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """The error of the file system is an InputError."""
    with pytest.raises(InputError, match="No such file"):
        PerfettoTrace(tmp_path / "absent")


def read_or_refuse(path: Path, content: bytes) -> None:
    """Read all of *content*. Any error but InputError is a bug."""
    path.write_bytes(content)
    try:
        for block in PerfettoTrace(path).blocks():
            assert block.dtype == SCHED_EVENT
    except InputError:
        pass


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """Random bytes, alone and as the content of a bundle and of every message that is read."""
    path = tmp_path_factory.mktemp("fuzz") / "trace"
    read_or_refuse(path, content)
    for field in (1, 2, 45, 30_901, 30_902, 30_903):
        packet = block_of(field, content)
        read_or_refuse(path, block_of(1, packet))
    for inner in (2, 4):
        read_or_refuse(path, block_of(1, block_of(1, block_of(inner, content))))


def block_of(field: int, content: bytes) -> bytes:
    """Return a field of bytes by the protobuf package."""
    from google.protobuf.internal.encoder import BytesEncoder  # noqa: PLC0415

    out = io.BytesIO()
    BytesEncoder(field, is_repeated=False, is_packed=False)(out.write, content, True)
    return out.getvalue()


SMALL = written({cpu: cpu_events(cpu, 60, 20) for cpu in range(2)}, threads(20), pieces=2)
FOREIGN = perfetto_recording(compact=False).SerializeToString()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_traces_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Bytes of a whole trace are changed, and its end is cut."""
    content = bytearray(data.draw(st.sampled_from([SMALL, FOREIGN])))
    places = st.lists(st.integers(0, len(content) - 1), max_size=4)
    for place in data.draw(places):
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    read_or_refuse(tmp_path_factory.mktemp("fuzz") / "trace", bytes(content[:cut]))
