"""Scenes whose culprit is known: the report names it, and the shares add up to the whole wait."""

import tracemalloc

import pytest

from temper_plugin_tracer.trace.analysis.known import Known
from temper_plugin_tracer.trace.analysis.report import percentages
from temper_plugin_tracer.trace.analysis.reporting import Wanted, report_of
from temper_plugin_tracer.trace.events import Kind
from temper_plugin_tracer.trace.roster import TracedThread
from tests.tracer.trace.scenes import (
    analyzed,
    events,
    handler,
    move,
    preempt,
    switch,
    throttle,
    wake,
)

VICTIM = 10
THREADS = [
    TracedThread(10, 10, "mysqld", "mysqld", "shop/mysql-0", "workers", "high", "high"),
    TracedThread(11, 11, "kworker/0:1", "kworker/0:1"),
    TracedThread(12, 12, "rtaudio", "rtaudio"),
    TracedThread(13, 13, "nginx", "nginx", "shop/web-0", "workers", "high", "high"),
    TracedThread(14, 14, "scx_layered", "scx_layered"),
    TracedThread(15, 10, "purge", "mysqld", "shop/mysql-0", "purge", "high", "high"),
]


def told(block, known=None, level="thread", of="mysqld"):
    wanted = Wanted(knows_siblings=bool(known and known.cores), of=of)
    report = report_of(analyzed(block, known), THREADS, wanted)
    return report.subjects[level][0]


def waits_behind(other, prio=120):
    """The victim is woken on CPU 0 at 1,100 and gets it at 1,500, when *other* leaves it."""
    return events(
        switch(1_000, 0, 0, other, prio=prio),
        switch(1_000, 1, 0, 99),
        wake(1_100, 99, VICTIM, 0, cpu=1),
        switch(1_500, 0, other, VICTIM),
        switch(1_600, 0, VICTIM, 0),
    )


@pytest.mark.parametrize(
    ("other", "prio", "party", "kind", "relation"),
    [
        (11, 120, "kworker/0:1[11]", "kernel thread", ""),
        (12, 49, "rtaudio[12]", "real-time thread", ""),
        (13, 120, "nginx[13]", "thread", "same layer"),
        (14, 120, "scx_layered[14]", "engine", ""),
        (15, 120, "purge[15]", "thread", "same pod"),
    ],
)
def test_the_thread_that_held_the_cpu_has_the_whole_wait(other, prio, party, kind, relation):
    victim = told(waits_behind(other, prio))

    (share,) = victim.blockers["thread"]
    assert (share.party, share.kind, share.relation) == (party, kind, relation)
    assert (share.ns, share.percent, victim.wait_ns) == (400, 100.0, 400)


def test_a_neighbour_of_the_layer_is_told_by_pod_and_by_layer():
    victim = told(waits_behind(13), level="pod", of="shop/mysql-0")

    assert [share.party for share in victim.blockers["pod"]] == ["shop/web-0"]
    assert [share.party for share in victim.blockers["layer"]] == ["high"]


def test_softirq_and_interrupt_time_is_not_told_as_the_interrupted_thread():
    block = events(
        switch(1_000, 0, 0, 13),
        wake(1_100, 0, VICTIM, 0),
        handler(1_100, 0, Kind.SOFTIRQ_BEGINS, 3),
        handler(1_200, 0, Kind.INTERRUPT_BEGINS, 24),
        handler(1_230, 0, Kind.INTERRUPT_ENDS, 24),
        handler(1_400, 0, Kind.SOFTIRQ_ENDS, 3),
        switch(1_500, 0, 13, VICTIM),
    )

    victim = told(block)

    assert {share.party: share.ns for share in victim.blockers["thread"]} == {
        "(softirq NET_RX)": 270,
        "nginx[13]": 100,
        "(interrupt 24)": 30,
    }


def test_of_the_wait_of_a_throttled_thread_nobody_else_is_the_cause():
    """Its wait behind another thread is told as before."""
    block = events(
        switch(1_000, 0, 0, VICTIM),
        throttle(1_100, 0, VICTIM, 13),
        switch(1_200, 0, 13, 0),
        switch(1_500, 0, 0, VICTIM),
        preempt(1_600, 0, VICTIM, 13),
        switch(1_700, 0, 13, VICTIM),
    )

    victim = told(block)

    assert {share.party: share.ns for share in victim.blockers["thread"]} == {
        "(throttled)": 400,
        "nginx[13]": 100,
    }


def test_a_busy_sibling_is_told_with_who_ran_on_it():
    block = events(
        switch(1_000, 0, 0, VICTIM),
        switch(1_000, 1, 5, 0),
        switch(1_200, 1, 0, 13),
        switch(1_500, 1, 13, 0),
        switch(1_600, 0, VICTIM, 0),
    )

    victim = told(block, Known(cores=((0, 1),)))

    assert (victim.run_ns, victim.shared_ns) == (600, 300)
    assert {s.party: s.ns for s in victim.sharers["thread"]} == {"nginx[13]": 300, "(idle)": 300}


def test_a_wait_that_moves_is_told_by_the_cpus_where_the_thread_was_queued():
    block = events(
        switch(1_000, 0, 0, 13),
        switch(1_000, 1, 0, 11),
        wake(1_100, 0, VICTIM, 0),
        move(1_300, VICTIM, 0, 1),
        switch(1_600, 1, 11, VICTIM),
    )

    victim = told(block)

    assert {s.party: s.ns for s in victim.blockers["thread"]} == {
        "kworker/0:1[11]": 300,
        "nginx[13]": 200,
    }


def test_time_before_the_first_switch_of_a_cpu_is_told_as_such():
    victim = told(
        events(wake(1_000, 0, VICTIM, 1), switch(1_300, 1, 13, VICTIM), switch(1_400, 1, VICTIM, 0))
    )

    assert [(s.kind, s.ns) for s in victim.blockers["thread"]] == [("unknown", 300)]


def test_a_wait_that_has_not_ended_counts_up_to_the_last_event():
    victim = told(
        events(switch(1_000, 0, 0, 13), wake(1_100, 0, VICTIM, 0), switch(1_900, 0, 13, 13))
    )

    assert (victim.wait_ns, victim.waits.count, victim.blockers["thread"][0].ns) == (800, 0, 800)


def test_the_slowest_wake_up_has_its_blocker_and_the_wake_ups_behind_it():
    block = events(
        switch(1_000, 0, 0, 13),
        wake(1_000, 0, 15, 1, cpu=1, flags=1),
        switch(1_050, 1, 0, 15),
        wake(1_100, 15, VICTIM, 0, cpu=1),
        switch(1_500, 0, 13, VICTIM),
    )

    slow, _ = report_of(analyzed(block, size=2), THREADS, Wanted()).slowest

    assert (slow.woken, slow.wait_ns, slow.at_ns, slow.cpu) == ("mysqld[10]", 400, 100, 0)
    assert [(share.party, share.percent) for share in slow.blockers] == [("nginx[13]", 100.0)]
    assert [(link.waker, link.woken, link.wait_ns) for link in slow.chain] == [
        ("purge[15]", "mysqld[10]", 400),
        ("(interrupt)", "purge[15]", 50),
    ]


def test_wakers_and_wakees_are_those_of_the_subjects_that_are_asked_for():
    block = events(
        switch(1_000, 0, 0, 14),
        wake(1_050, 14, 12, 0),
        wake(1_100, 14, VICTIM, 0),
        switch(1_500, 0, 14, VICTIM),
        switch(1_600, 0, VICTIM, 12),
        switch(1_700, 0, 12, 0),
    )

    report = report_of(analyzed(block), THREADS, Wanted(of="shop/mysql-0"))

    assert [(edge.waker, edge.woken) for edge in report.edges] == [
        ("scx_layered[14]", "mysqld[10]")
    ]


def test_wakers_can_be_interrupts():
    block = events(
        switch(1_000, 0, 0, 14), wake(1_050, 14, VICTIM, 0, flags=1), switch(1_100, 0, 14, VICTIM)
    )

    report = report_of(analyzed(block), THREADS, Wanted(of="interrupt"))

    assert [(edge.waker, edge.woken) for edge in report.edges] == [("(interrupt)", "mysqld[10]")]


def test_of_a_selection_only_the_selected_threads_are_told_as_waiting():
    block = events(
        switch(1_000, 0, 0, 13),
        wake(1_050, 13, 12, 0),
        wake(1_100, 13, VICTIM, 0),
        switch(1_500, 0, 13, VICTIM),
        switch(9_000, 0, VICTIM, 12),
        switch(9_100, 0, 12, 0),
    )

    report = report_of(analyzed(block, Known(selected=frozenset({VICTIM}))), THREADS, Wanted())

    assert [one.name for one in report.subjects["thread"]] == ["mysqld[10]"]
    assert [one.name for one in report.subjects["pod"]] == ["shop/mysql-0"]
    assert [(slow.woken, slow.wait_ns) for slow in report.slowest] == [("mysqld[10]", 400)]
    assert [(edge.waker, edge.woken) for edge in report.edges] == [("nginx[13]", "mysqld[10]")]
    assert (report.whole_threads, report.threads) == (1, 3)


def test_time_outside_of_the_planned_cpus_is_counted():
    block = events(
        switch(1_000, 0, 0, VICTIM), switch(1_300, 0, VICTIM, 0), switch(1_400, 2, 0, VICTIM)
    )
    block = events(*block.tolist(), switch(1_500, 2, VICTIM, 0))
    known = Known(planned={"high": frozenset({0})}, layers={VICTIM: "high"})

    assert int(analyzed(block, known).threads.outside_ns.sum()) == 100


@pytest.mark.parametrize("parts", [[1, 1, 1], [1, 999_999], [7] * 13, [5], [0, 3]])
def test_percentages_add_up_to_a_hundred(parts):
    assert round(sum(percentages(parts)), 6) == 100.0


def test_thousands_that_wait_at_once_take_bounded_memory():
    count = 4_000
    block = events(
        *(preempt(1_000 + 10 * tid, 0, max(0, tid - 1), tid) for tid in range(1, count)),
        *(preempt(100_000 + 10 * tid, 0, tid - 1 or count - 1, tid) for tid in range(1, count)),
    )

    tracemalloc.start()
    analyzer = analyzed(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    _, sums = analyzer.blockers.all()
    assert sums.sum() == analyzer.threads.wait_ns.sum()
    assert peak < 300 * 1024 * 1024
