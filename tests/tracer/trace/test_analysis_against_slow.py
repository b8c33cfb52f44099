"""The analysis of generated scenes equals that of the slow implementation, to the nanosecond."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_plugin_tracer.trace.analysis.analyzer import WakeAnalyzer
from temper_plugin_tracer.trace.analysis.known import Known
from temper_plugin_tracer.trace.events import PREEMPTED, Kind
from tests.tracer.trace.scenes import (
    analyzed,
    blocks_of,
    events,
    flagged,
    handler,
    move,
    pairs_by_tid,
    switch,
    wake,
)
from tests.tracer.trace.slow_analysis import SlowAnalysis

SUMS = [
    "run_ns",
    "wait_ns",
    "wakeups",
    "idle_wakeups",
    "migrations",
    "preemptions",
    "unwoken",
    "broken",
    "shared_ns",
    "outside_ns",
]
CORES = ((0, 1), (2, 3))
SIBLINGS = {0: (1,), 1: (0,), 2: (3,), 3: (2,)}
PLANNED = {"high": frozenset({0, 1})}
LAYERS = {1: "high", 2: "high", 3: "low"}

tids = st.integers(0, 6)
cpus = st.integers(0, 3)
flags = st.integers(0, 1)
states = st.sampled_from([0, 1, 2, 0x80, PREEMPTED])
handlers = st.sampled_from([kind for kind in Kind if kind >= Kind.INTERRUPT_BEGINS])


@st.composite
def any_events(draw):
    """Events in any order: most of them contradict each other, as after losses."""
    now, rows = 1_000, []
    for _ in range(draw(st.integers(1, 60))):
        now += draw(st.integers(0, 9))
        rows.append(
            draw(
                st.one_of(
                    st.builds(
                        flagged,
                        st.builds(switch, st.just(now), cpus, tids, tids, states),
                        flags,
                    ),
                    st.builds(wake, st.just(now), tids, tids, cpus, cpus, st.integers(0, 1)),
                    st.builds(move, st.just(now), tids, cpus, cpus),
                    st.builds(handler, st.just(now), cpus, handlers, st.integers(0, 3)),
                )
            )
        )
    return events(*rows)


@st.composite
def true_events(draw):
    """Events that a kernel could have recorded without a loss."""
    now, rows, on_cpu = 1_000, [], dict.fromkeys(range(4), 0)
    asleep, queued = set(range(1, 7)), {}
    for _ in range(draw(st.integers(1, 80))):
        now += draw(st.integers(0, 50))
        cpu = draw(cpus)
        if asleep and draw(st.booleans()):
            tid = draw(st.sampled_from(sorted(asleep)))
            asleep.discard(tid)
            queued[tid] = draw(cpus)
            rows.append(wake(now, on_cpu[cpu], tid, queued[tid], cpu))
        elif queued and draw(st.booleans()):
            tid = draw(st.sampled_from(sorted(queued)))
            if queued[tid] != cpu:
                rows.append(move(now, tid, queued[tid], cpu))
            del queued[tid]
            state = draw(st.sampled_from([1, PREEMPTED]))
            if on_cpu[cpu]:
                (asleep.add if state == 1 else lambda t, c=cpu: queued.update({t: c}))(on_cpu[cpu])
            state = state if on_cpu[cpu] else 0
            rows.append(flagged(switch(now, cpu, on_cpu[cpu], tid, state), draw(flags)))
            on_cpu[cpu] = tid
        elif on_cpu[cpu]:
            asleep.add(on_cpu[cpu])
            rows.append(switch(now, cpu, on_cpu[cpu], 0))
            on_cpu[cpu] = 0
    return events(*(rows or [switch(1_000, 0, 0, 1)]))


def assert_equal(block, size, recorded=None):
    known = Known(CORES, PLANNED, LAYERS, recorded=recorded)
    quick = analyzed(block, known, size, slowest=5)
    slow = SlowAnalysis(
        SIBLINGS,
        lambda tid, cpu: LAYERS.get(tid) in PLANNED and cpu not in PLANNED[LAYERS[tid]],
        recorded,
    )
    for event in block:
        slow.add(event)
    table = quick.threads
    for tid, thread in slow.threads.items():
        row = table.row(tid)
        found = {name: int(getattr(table, name)[row]) for name in SUMS}
        assert found == {name: int(thread.sums[name]) for name in SUMS}, tid
        assert (table.slices[row], table.slices_ns[row]) == (len(thread.slices), sum(thread.slices))
        assert (table.waits[row], table.waits_ns[row]) == (len(thread.waits), sum(thread.waits))
        assert table.longest_wait_ns[row] == max(thread.waits, default=0)
        assert table.longest_slice_ns[row] == max(thread.slices, default=0)
        assert int(table.wait_counts[row].sum()) == len(thread.waits)
    assert pairs_by_tid(quick, quick.blockers) == dict(slow.blockers)
    assert pairs_by_tid(quick, quick.sharers) == dict(slow.sharers)
    assert {
        (waker, int(table.tids[row])): (count, ns, longest)
        for waker, row, count, ns, longest in quick.edges.all()
    } == {key: (len(waits), sum(waits), max(waits)) for key, waits in slow.edges.items()}
    assert sorted(
        (-w.ns, w.began_ns, int(table.tids[w.row]), w.cpu, w.parties, w.links)
        for w in quick.slowest.all()
    ) == untied(slow.slow, quick)


def untied(slow, quick):
    """Return the slowest of the slow implementation, ties resolved as the quick one does."""
    order = {int(tid): row for row, tid in enumerate(quick.threads.tids[: quick.threads.count])}
    return sorted(sorted(slow, key=lambda w: (w[0], w[1], order[w[2]]))[:5])


@settings(max_examples=60, deadline=None)
@given(any_events(), st.sampled_from([1, 3, 7, 1 << 16]))
def test_contradicting_events_give_what_the_slow_analysis_gives(block, size):
    assert_equal(block, size)


@settings(max_examples=60, deadline=None)
@given(true_events(), st.sampled_from([1, 5, 11, 1 << 16]))
def test_true_events_give_what_the_slow_analysis_gives(block, size):
    assert_equal(block, size)


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(any_events(), true_events()), st.sampled_from([1, 5, 1 << 16]), st.frozensets(cpus)
)
def test_the_events_of_some_cpus_give_what_the_slow_analysis_gives(block, size, recorded):
    assert_equal(block, size, recorded)


@settings(max_examples=60, deadline=None)
@given(st.one_of(true_events(), any_events()), st.sampled_from([1, 5, 1 << 16]))
def test_the_slowest_wake_ups_of_some_threads_are_those_of_all_without_the_others(block, size):
    every = analyzed(block, size=size, slowest=len(block))
    some = WakeAnalyzer(slowest=3, is_asked=lambda tid: bool(tid % 2))
    for part in blocks_of(block, size):
        some.add(part)

    tids = every.threads.tids
    wanted = [wake for wake in every.slowest.all() if tids[wake.row] % 2]
    assert list(some.slowest.all()) == wanted[:3]


@settings(max_examples=40, deadline=None)
@given(true_events())
def test_shares_of_a_wait_add_up_to_all_of_it(block):
    quick = analyzed(block, size=7)

    waits = {
        int(tid): int(ns) for tid, ns in zip(quick.threads.tids, quick.threads.wait_ns, strict=True)
    }
    sums = {}
    for (tid, _), ns in pairs_by_tid(quick, quick.blockers).items():
        sums[tid] = sums.get(tid, 0) + ns
    assert {tid: ns for tid, ns in waits.items() if ns} == sums
    assert np.all(quick.threads.run_ns >= 0)
