"""A made trace in the real Perfetto UI."""

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from tests.tracer.trace.perfetto_ui import errors_in, opened_in_ui, text_of
from tests.tracer.trace.traces import cpu_events, threads, written


def test_the_trace_opens_in_the_ui() -> None:
    """The UI shows the CPUs, the processes and their labels, and counts no error."""
    trace = written({cpu: cpu_events(cpu, 3_000, 40) for cpu in range(2)}, threads(40))
    with opened_in_ui(trace) as page:
        shown = text_of(page)
        assert errors_in(page) == {}
    assert "CPU 1 Scheduling" in shown
    assert "process 11" in shown
    assert "pod shop/pod-21" in shown


def test_the_ui_counts_the_errors_of_a_damaged_trace() -> None:
    """A column that is shorter than the others is an error of the importer."""
    trace = protos.Trace()
    trace.ParseFromString(written({0: cpu_events(0, 3_000, 40)}, threads(40)))
    bundles = [packet.ftrace_events for packet in trace.packet if packet.HasField("ftrace_events")]
    bundles[0].compact_sched.switch_next_prio.pop()
    with opened_in_ui(trace.SerializeToString()) as page:
        assert errors_in(page) == {"compact_sched_has_parse_errors": 1}
