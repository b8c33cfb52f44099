import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from temper_plugin_tracer.pacing import (
    AIM_CPU_RATIO,
    LATEST_S,
    LEAST_S,
    MOST_S,
    SOONEST_S,
    WakePace,
)

RATES = st.floats(0, 5e6)
COSTS_NS = st.floats(50, 5_000)
FIXED_S = st.floats(0, 0.05)
SHARES = st.floats(1e-5, 0.01)


def pace_that_learnt(cost_ns, fixed_s):
    pace = WakePace()
    pace.learn(1_000_000, cost_ns / 1e3, fixed_s)
    return pace


@given(RATES, COSTS_NS, FIXED_S, SHARES)
def test_whatever_the_rate_a_window_is_paid_for_until_the_next(rate, cost_ns, fixed_s, share):
    plan = pace_that_learnt(cost_ns, fixed_s).plan(rate, share)
    assume(plan.length_s)

    cost_s = fixed_s + rate * cost_ns / 1e9 * plan.length_s
    assert cost_s / plan.every_s <= share * (1 + 1e-9)
    assert LEAST_S <= plan.length_s <= MOST_S
    assert max(SOONEST_S, plan.length_s) <= plan.every_s <= LATEST_S
    assert plan.reason == ""


@given(RATES, COSTS_NS, FIXED_S, SHARES)
def test_where_there_is_no_window_the_reason_is_told(rate, cost_ns, fixed_s, share):
    plan = pace_that_learnt(cost_ns, fixed_s).plan(rate, share)
    assume(not plan.length_s)

    least_s = fixed_s + rate * cost_ns / 1e9 * LEAST_S
    assert least_s / LATEST_S > share * (1 - 1e-9)
    assert plan.reason


@given(RATES, RATES, COSTS_NS)
def test_the_more_switches_the_shorter_the_window(one, other, cost_ns):
    pace = pace_that_learnt(cost_ns, 0.001)
    quiet, busy = sorted((one, other))

    assert pace.plan(busy, 0.01).length_s <= pace.plan(quiet, 0.01).length_s


def test_a_quiet_node_is_watched_for_a_second():
    assert WakePace().plan(1_000, AIM_CPU_RATIO).length_s == MOST_S


def test_a_busy_node_is_watched_for_less_and_a_storm_for_the_least():
    pace = WakePace()

    busy, storm = (pace.plan(rate, AIM_CPU_RATIO) for rate in (200_000, 2_000_000))

    assert 0.05 < busy.length_s < 0.2
    assert storm.length_s == LEAST_S
    assert storm.every_s > busy.every_s


def test_where_reading_is_dear_counting_gets_as_much_and_windows_come_less_often():
    pace = pace_that_learnt(1_000, 0.02)

    plan = pace.plan(100_000, AIM_CPU_RATIO)

    assert plan.length_s == pytest.approx(0.2)
    assert plan.every_s == pytest.approx(80)


def test_too_many_switches_for_even_the_shortest_window_are_told_with_their_number():
    plan = WakePace().plan(50_000_000, AIM_CPU_RATIO)

    assert plan.length_s == 0
    assert plan.reason.startswith("at 50000000 switches per second even 20 ms would cost more")
    assert "0.050% of a core" in plan.reason


@pytest.mark.parametrize(
    ("budget", "observing", "share"),
    [(0.01, 0.0, AIM_CPU_RATIO), (0.01, 0.0097, 0.0003), (0.01, 0.02, 0.0), (0.0001, 0.0, 0.0001)],
)
def test_watching_gets_what_observing_leaves_but_never_more_than_its_aim(budget, observing, share):
    assert WakePace().share(budget - observing) == pytest.approx(share)


def test_without_anything_left_of_the_budget_there_is_no_window():
    plan = WakePace().plan(1_000, 0.0)

    assert plan.length_s == 0
    assert "nothing is left of the budget" in plan.reason


def test_what_a_window_cost_makes_the_next_longer_or_shorter():
    pace = WakePace()
    first = pace.plan(200_000, AIM_CPU_RATIO).length_s

    pace.learn(20_000, 20_000 * 200e-9, 0.004)
    cheaper = pace.plan(200_000, AIM_CPU_RATIO).length_s
    pace.learn(20_000, 20_000 * 1200e-9, 0.004)

    assert cheaper == pytest.approx(first * 2)
    assert pace.plan(200_000, AIM_CPU_RATIO).length_s == pytest.approx(first / 3)


def test_a_window_without_a_switch_teaches_nothing_about_their_cost():
    pace = WakePace()
    before = pace.cost_ns

    pace.learn(0, 0.0, 0.001)

    assert pace.cost_ns == before
