"""What the real trace_processor of Perfetto says of our traces, against what was written."""

import io
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from attrs import evolve
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from temper_plugin_tracer.trace.events import Kind
from temper_plugin_tracer.trace.perfetto.wire import packed
from temper_plugin_tracer.trace.perfetto.writer import TraceWriter
from tests.tracer.trace.trace_processor import LOSSES, TraceProcessor
from tests.tracer.trace.traces import (
    BEGAN_NS,
    FACTS,
    MACHINE,
    in_time_order,
    threads,
    written,
)
from tests.tracer.trace.traces import cpu_events as made_events

CPUS, THREADS, EVENTS = 4, 60, 4_000
CLEAN_FACTS = evolve(FACTS, lost={0: 0})


def cpu_events(cpu: int) -> np.ndarray:
    """Return events of threads that run on this CPU only, as trace_processor asks of a trace."""
    events = made_events(cpu, EVENTS, THREADS // CPUS)
    of_threads = events["kind"] <= Kind.MIGRATION
    for name in ("next", "tgid"):
        events[name][of_threads] += cpu * THREADS
    moved = of_threads & (events["kind"] != Kind.MIGRATION)
    events["prev"][moved & (events["prev"] > 0)] += cpu * THREADS
    events["tgid"][of_threads] = events["next"][of_threads] - (events["next"][of_threads] - 1) % 10
    return events


@pytest.fixture(scope="module")
def by_cpu() -> dict[int, np.ndarray]:
    """Events of all CPUs."""
    return {cpu: cpu_events(cpu) for cpu in range(CPUS)}


@pytest.fixture(scope="module")
def processor(by_cpu: dict[int, np.ndarray]) -> Iterator[TraceProcessor]:
    """A trace_processor with a trace of these events and some tracks."""
    out = io.BytesIO(written(by_cpu, threads(CPUS * THREADS), pieces=3, facts=CLEAN_FACTS))
    out.seek(0, io.SEEK_END)
    writer = TraceWriter(out)
    root = writer.track("Temper")
    mode = writer.track("mode", root)
    writer.slice(mode, BEGAN_NS, BEGAN_NS + 1_000, "exclusive")
    writer.slice(mode, BEGAN_NS + 1_000, BEGAN_NS + 5_000, "safe mode")
    writer.instant(mode, BEGAN_NS + 2_000, "swap", {"generation": "7"})
    used = writer.track("CPUs used", root, is_counter=True)
    for step in range(3):
        writer.counter(used, BEGAN_NS + step * 100, step * 250 - 250)
    opened = TraceProcessor(out.getvalue())
    yield opened
    opened.close()


def test_nothing_is_lost_or_in_error(processor: TraceProcessor) -> None:
    """No statistic of severity error or data_loss is above zero."""
    assert processor.ask(LOSSES) == []


def test_switches_and_run_time_are_equal(
    processor: TraceProcessor, by_cpu: dict[int, np.ndarray]
) -> None:
    """A slice for each switch; each thread's run time to the nanosecond."""
    counts, run_ns = Counter(), Counter()
    for events in by_cpu.values():
        switches = events[events["kind"] == Kind.SWITCH]
        counts.update(switches["next"][:-1].tolist())
        for tid, ns in zip(switches["next"][:-1], np.diff(switches["ns"]), strict=True):
            run_ns[int(tid)] += int(ns)
    rows = processor.ask(
        "select tid, count(*), sum(dur) from sched join thread using (utid) "
        "where dur >= 0 and tid > 0 group by tid"
    )
    assert {tid: count for tid, count, _ in rows} == dict(counts)
    assert {tid: ns for tid, _, ns in rows} == dict(run_ns)


def test_end_states_are_equal(processor: TraceProcessor, by_cpu: dict[int, np.ndarray]) -> None:
    """The state in which a thread leaves a CPU is decoded as what it was."""
    letters = {0x100: "R+", 1: "S", 2: "D", 0x80: "I"}
    expected: Counter[str] = Counter()
    for events in by_cpu.values():
        switches = events[events["kind"] == Kind.SWITCH][1:]
        expected.update(letters[state] for state in switches["state"].tolist())
    rows = processor.ask("select end_state, count(*) from sched where dur >= 0 group by end_state")
    assert {state: count for state, count in rows if state} == expected


def test_wakings_are_equal(processor: TraceProcessor, by_cpu: dict[int, np.ndarray]) -> None:
    """Each waking names its CPU, thread and whether an interrupt handler woke."""
    events = in_time_order(by_cpu)
    wakings = events[events["kind"] == Kind.WAKING]
    rows = processor.ask(
        "select ts, extract_arg(arg_set_id, 'pid'), extract_arg(arg_set_id, 'target_cpu'), "
        "extract_arg(arg_set_id, 'prio') from ftrace_event where name = 'sched_waking' order by ts"
    )
    assert rows == wakings[["ns", "next", "target", "prio"]].tolist()


def test_names_are_those_of_the_roster(processor: TraceProcessor) -> None:
    """Threads and processes have the names and belong together as written."""
    rows = processor.ask(
        "select tid, pid, thread.name, process.name from thread join process using (upid) "
        "where tid > 0 order by tid"
    )
    known = threads(CPUS * THREADS)
    assert rows == [(each.tid, each.tgid, each.name, each.process) for each in known]


def test_pods_and_groups_label_the_processes(processor: TraceProcessor) -> None:
    """Perfetto shows labels beside a process."""
    rows = processor.ask(
        "select pid, args.key, args.display_value from process join args using (arg_set_id) "
        "where pid = 11 order by args.key"
    )
    assert {value for _, key, value in rows if "label" in key} == {
        "pod shop/pod-11",
        "group io",
        "tier critical",
        "layer critical",
    }


def test_migrations_and_interrupts_are_there(
    processor: TraceProcessor, by_cpu: dict[int, np.ndarray]
) -> None:
    """Each single event is counted by its name."""
    expected = Counter(np.concatenate(list(by_cpu.values()))["kind"].tolist())
    rows = dict(
        processor.ask("select name, count(*) from ftrace_event where name != '' group by name")
    )
    assert rows["sched_migrate_task"] == expected[Kind.MIGRATION]
    assert rows["irq_handler_entry"] == expected[Kind.INTERRUPT_BEGINS]
    assert rows["irq_handler_exit"] == expected[Kind.INTERRUPT_ENDS]
    assert rows["softirq_entry"] == expected[Kind.SOFTIRQ_BEGINS]
    assert rows["softirq_exit"] == expected[Kind.SOFTIRQ_ENDS]


def test_own_tracks_are_shown(processor: TraceProcessor) -> None:
    """Slices, instants with their details, and counters are found by the names of their tracks."""
    rows = processor.ask(
        "select slice.ts, dur, slice.name from slice join track on track_id = track.id "
        "where track.name = 'mode' order by slice.ts, slice.id"
    )
    assert rows == [
        (BEGAN_NS, 1_000, "exclusive"),
        (BEGAN_NS + 1_000, 4_000, "safe mode"),
        (BEGAN_NS + 2_000, 0, "swap"),
    ]
    assert processor.ask(
        "select extract_arg(arg_set_id, 'debug.generation') from slice where name = 'swap'"
    ) == [("7",)]
    assert processor.ask(
        "select ts, value from counter join track on track_id = track.id "
        "where track.name = 'CPUs used' order by ts"
    ) == [(BEGAN_NS + step * 100, step * 250 - 250) for step in range(3)]


def test_the_machine_and_facts_are_metadata(processor: TraceProcessor) -> None:
    """The page of metadata says who captured what, and on which kernel."""
    told = dict(processor.ask("select name, str_value from metadata"))
    assert told["system_release"] == MACHINE.utsname[1]
    assert told["cr-temper.node"] == "node-1"
    assert told["cr-temper.selection"] == "pod shop/mysql-0"
    assert told["cr-temper.lost_events"] == "0"


def test_losses_are_told_by_cpu() -> None:
    """The statistics of Perfetto name the CPU that lost events, and how many."""
    opened = TraceProcessor(written({0: cpu_events(0)}, threads(20), facts=FACTS))
    try:
        found = opened.ask(
            "select idx, value from stats where name = 'ftrace_cpu_overrun_delta' and value > 0"
        )
        assert found == [(3, 17)]
    finally:
        opened.close()


def test_the_protobuf_package_reads_what_was_written(by_cpu: dict[int, np.ndarray]) -> None:
    """Another reader of the wire format sees the same columns."""
    trace = protos.Trace()
    trace.ParseFromString(written(by_cpu, threads(THREADS)))
    for packet in trace.packet:
        if packet.HasField("ftrace_events"):
            bundle = packet.ftrace_events
            events = by_cpu[bundle.cpu]
            switches = events[events["kind"] == Kind.SWITCH]
            first = next(each for each in bundle.event if each.HasField("sched_switch"))
            assert first.timestamp == switches["ns"][0]
            assert first.sched_switch.prev_pid == switches["prev"][0]
            switches = switches[1:]
            assert list(bundle.compact_sched.switch_next_pid) == switches["next"].tolist()
            times = np.cumsum(np.array(bundle.compact_sched.switch_timestamp, np.uint64))
            assert times.tolist() == switches["ns"].tolist()


@pytest.mark.parametrize("bits", range(0, 65, 7))
def test_varints_of_every_length_are_packed(bits: int) -> None:
    """Values around each power of 128, and negative ones, as the protobuf package writes them."""
    most = (1 << 64) - 1
    values = np.array([0, 1, 127, max(0, (1 << bits) - 1), min(most, 1 << bits)], np.uint64)
    message = protos.FtraceEventBundle.CompactSched(switch_timestamp=values.tolist())
    assert message.SerializeToString().endswith(packed(values))
    negative = protos.FtraceEventBundle.CompactSched(switch_next_prio=[-1, 5])
    assert negative.SerializeToString().endswith(packed(np.array([-1, 5], np.int16)))
