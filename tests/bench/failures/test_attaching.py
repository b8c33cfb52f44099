"""What the CPUs ran while an engine attached, read from a trace that a guest recorded."""

from pathlib import Path

import pytest

from bench.failures.attaching import Attaching, cycles, longest_wait, ran, read, table

TRACE = Path(__file__).parents[3] / "bench/failures/records/2026-11-28-stall.trace.gz"
PREFIX = "          <idle>-{pid}       [000] d..2.   {at_s:.6f}: "


@pytest.fixture(scope="module")
def recorded():
    return read(TRACE)


def taken(*events):
    attaching = Attaching()
    for at_s, text in events:
        attaching.take(PREFIX.format(pid=7, at_s=at_s) + text)
    return attaching


def switch(previous, state, name, following):
    return (
        f"sched_switch: prev_comm=x prev_pid={previous} prev_prio=120 prev_state={state} "
        f"==> next_comm={name} next_pid={following} next_prio=120"
    )


def test_requests_wait_until_the_engines_first_cycle_and_not_after_it(recorded):
    first = next(at for at in cycles(recorded) if at >= 100)

    begin = recorded.attached
    assert longest_wait(recorded.turns, begin, begin + first) > 10
    assert longest_wait(recorded.turns, begin + first + 60, begin + first + 300) < 2


def test_a_wait_is_from_the_waking_to_the_turn():
    attaching = taken(
        (1.0, "sched_waking: comm=ladder-server pid=5 prio=120 target_cpu=000"),
        (1.010, switch(0, "R", "ladder-server", 5)),
        (1.012, switch(5, "S", "swapper/0", 0)),
    )

    (turn,) = attaching.turns
    assert turn.waited == pytest.approx(10)
    assert turn.end - turn.begin == pytest.approx(2)


def test_a_thread_that_is_preempted_waits_from_then_on():
    attaching = taken(
        (1.0, switch(5, "R", "ladder-spin", 6)),
        (1.003, switch(6, "R", "ladder-server", 5)),
        (1.004, switch(5, "S", "swapper/0", 0)),
    )

    assert longest_wait(attaching.turns, 0, 2000) == pytest.approx(3)


def test_times_are_shared_among_the_kinds_of_threads():
    attaching = taken(
        (1.0, switch(0, "R", "ladder-spin", 6)),
        (1.006, switch(6, "R", "temper", 8)),
        (1.010, switch(8, "S", "swapper/0", 0)),
    )

    times = ran(attaching.turns, 1004, 1020)
    assert times["busy threads"] == pytest.approx(2)
    assert times["agent"] == pytest.approx(4)


def test_the_bypass_ends_when_its_duration_is_counted(recorded):
    assert recorded.bypass == pytest.approx(63.1, abs=0.1)
    assert any("| 0 to 20 |" in line for line in table(recorded))


def test_a_trace_without_an_engine_is_refused(tmp_path):
    (tmp_path / "none.trace").write_text("# tracer: nop\n")

    with pytest.raises(ValueError, match="no engine attaches"):
        read(tmp_path / "none.trace")
