"""Holds the sums of an analysis against those of Perfetto's trace_processor over the same trace."""

from pathlib import Path

from temper_plugin_tracer.trace.analysis.analyzer import Analyzer
from temper_plugin_tracer.trace.reading import open_trace
from tests.tracer.trace.trace_processor import LOSSES, TraceProcessor

STATES = """
select tid,
    sum(iif(state = 'Running', iif(dur < 0, {end_ns} - ts, dur), 0)),
    sum(iif(state in ('R', 'R+'), iif(dur < 0, {end_ns} - ts, dur), 0))
from thread_state join thread using (utid) where tid != 0 group by tid
"""
"""States that have not ended count up to the last event, as in an analysis. Temper's own tracks end
later."""
WAKEUPS = """
select tid, count() from thread_state join thread using (utid)
where state = 'R' and waker_utid is not null and tid != 0 group by tid
"""


def sums_of(table):
    """Return run time, wait and wake-ups of each thread of an analysis, without those of none."""
    columns = (table.tids, table.run_ns, table.wait_ns, table.wakeups)
    rows = zip(*(column[: table.count].tolist() for column in columns), strict=True)
    return {tid: sums for tid, *sums in rows if tid and any(sums)}


def asked(processor, end_ns):
    """Return the same of trace_processor."""
    wakeups, states = dict(processor.ask(WAKEUPS)), processor.ask(STATES.format(end_ns=end_ns))
    sums = {tid: [run, wait, wakeups.get(tid, 0)] for tid, run, wait in states}
    return {tid: each for tid, each in sums.items() if any(each)}


def assert_equal_sums(path: Path):
    """Assert that both give the same for each thread of a trace.

    Return the equal sums, and the threads of which the trace lacks switches. These are left out,
    since the programs guess differently, and so may be as many that ran beside them.
    """
    analyzer = Analyzer()
    for block in open_trace(path).blocks():
        analyzer.add(block)
    table = analyzer.threads
    ours = sums_of(table)
    broken = set(table.tids[table.broken > 0].tolist())
    processor = TraceProcessor(path.read_bytes())
    try:
        assert processor.ask(LOSSES) == []
        found = asked(processor, analyzer.end_ns)
    finally:
        processor.close()
    differ = {
        tid: (ours.get(tid), found.get(tid))
        for tid in (ours.keys() | found.keys()) - broken
        if ours.get(tid) != found.get(tid)
    }
    assert len(differ) <= len(broken), differ
    return {tid: sums for tid, sums in ours.items() if tid not in differ}, broken
