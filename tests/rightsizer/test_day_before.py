"""Advice follows the hours to come of the day before, as well as the last hours."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.records import Resources, Verdict
from temper_plugin_rightsizer.backtest.replay import OURS, compare, total
from temper_plugin_rightsizer.backtest.rules import RULES, ThreadRule
from temper_plugin_rightsizer.backtest.samples import steps_of_samples
from temper_plugin_rightsizer.backtest.shapes import DAY_S, SHAPES
from temper_plugin_rightsizer.cluster.demands import ClusterDemand
from temper_plugin_rightsizer.demand.day_before import hours_to_come
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.fleet.workloads import Owners
from temper_plugin_rightsizer.store.history import HOUR_S, History
from temper_plugin_rightsizer.store.packing import pack
from tests.rightsizer.shapes import learned, over_hours, window

NOW = 1_800_000_000 // HOUR_S * HOUR_S
WEB = ContainerKey("uid-web", "shop", "web-0", "app")
NIGHT = 3 * HOUR_S
"""A time of the day in the shape "day and night" at which little is used."""


def rest(used=0.2):
    return over_hours(lambda _: window(("main", used)))


def after(demand, day_before):
    demand.day_before = day_before
    return demand


@given(st.integers(0, 2**40), st.integers(1, 20 * DAY_S))
def test_the_hours_to_come_are_a_day_ago_and_outside_of_the_window(now, window_s):
    hours = hours_to_come(now, window_s)

    assert len(hours) <= window_s
    if hours:
        assert hours.start % HOUR_S == 0
        assert now - DAY_S - HOUR_S < hours.start <= now - DAY_S
        assert hours.stop <= now - window_s


def test_a_window_of_a_day_or_more_has_no_hours_to_come():
    assert len(hours_to_come(NOW, 6 * HOUR_S)) == 6 * HOUR_S
    assert len(hours_to_come(NOW, 20 * HOUR_S)) == 4 * HOUR_S
    assert not hours_to_come(NOW, DAY_S)


def test_a_day_before_that_needed_more_sets_the_request_and_the_reason_says_so():
    advice = advise(after(rest(), rest(0.6)), Resources())

    alone = advise(rest(0.6), Resources())
    assert advice.recommended.cpu_request_millis == alone.recommended.cpu_request_millis
    assert advice.reasons[0] == advise(rest(), Resources()).reasons[0]
    assert advice.reasons[1].startswith("a day ago the hours after this time of day needed more: ")


def test_a_day_before_that_needed_less_changes_nothing():
    assert advise(after(rest(0.6), rest()), Resources()) == advise(rest(0.6), Resources())


@pytest.mark.parametrize("is_hot_today", [True, False])
def test_a_thread_that_is_hot_in_either_time_gets_a_core(is_hot_today):
    hot = over_hours(lambda _: window(("hot", 0.95), idle=0.1))
    pool = over_hours(lambda _: window(*((f"pool-{n}", 0.3) for n in range(8))))
    today, before = (hot, pool) if is_hot_today else (rest(), hot)

    advice = advise(after(today, before), Resources())

    assert advice.verdict is Verdict.EXCLUSIVE
    assert (advice.hot_threads, advice.hot_cores) == (("hot",), 1)
    assert advice.recommended.cpu_request_millis == max(
        advise(each, Resources()).recommended.cpu_request_millis for each in (today, before)
    )


def test_a_limit_is_not_below_what_the_day_before_needed():
    advice = advise(after(rest(), rest(0.6)), Resources(cpu_limit_millis=500))

    assert advice.recommended.cpu_limit_millis == advice.recommended.cpu_request_millis > 500


def test_a_start_up_of_the_day_before_sets_no_request():
    before = rest()
    before.startup = learned([window(("jit", 1.0))] * 30)

    assert advise(after(rest(), before), Resources()) == advise(rest(), Resources())


def test_a_day_before_of_start_ups_only_sets_no_request():
    before = IntervalDemand(startup=learned([window(("jit", 2.0))] * 30))

    assert advise(after(rest(), before), Resources()) == advise(rest(), Resources())


def test_a_job_that_is_all_start_up_is_judged_by_those_of_the_day_before_too():
    short, before = (
        IntervalDemand(startup=learned([window(("jit", used))] * 30)) for used in (0.2, 0.6)
    )

    advice = advise(after(short, before), Resources())

    assert advice.recommended.cpu_request_millis == 790


def test_a_thread_that_was_hot_a_day_ago_is_hot_though_the_request_is_of_today():
    hot = over_hours(lambda _: window(("hot", 0.95), idle=0.1))
    pool = over_hours(lambda _: window(*((f"pool-{n}", 0.3) for n in range(8))))

    advice = advise(after(pool, hot), Resources())

    alone = advise(pool, Resources())
    assert advice.recommended == alone.recommended
    assert (advice.verdict, advice.hot_threads) == (Verdict.EXCLUSIVE, ("hot",))
    assert advice.reasons[:2] == (
        alone.reasons[0],
        "a day ago the hours after this time of day had 1 hot thread (hot)",
    )


def test_the_history_keeps_the_hours_to_come_apart(tmp_path):
    history = History(lambda: tmp_path, 4 << 20, clock=lambda: float(NOW))
    for hours_ago in (26, 24, 20, 18, 12, 1):
        demand = learned([window(("main", hours_ago / 100))] * 360)
        history.add(NOW - hours_ago * HOUR_S, HOUR_S, {WEB: demand})

    found = history.read(NOW - 6 * HOUR_S, day_before=hours_to_come(NOW, 6 * HOUR_S))[WEB]

    assert found.cpu.seconds == HOUR_S
    assert found.day_before.cpu.seconds == 2 * HOUR_S
    assert found.day_before.cpu.peak() == pytest.approx(0.24, rel=0.06)
    assert history.read(NOW - 6 * HOUR_S)[WEB].day_before is None


def test_the_hours_to_come_are_read_before_other_hours(tmp_path, monkeypatch):
    history = History(lambda: tmp_path, 4 << 20, clock=lambda: float(NOW))
    for hours_ago in range(30, 0, -1):
        demand = learned([window(("main", 0.2))] * 360)
        history.add(NOW - hours_ago * HOUR_S, HOUR_S, {WEB: demand})
    looks = iter(range(100))
    monkeypatch.setattr("time.thread_time", lambda: float(next(looks)))
    monkeypatch.setattr("temper_plugin_rightsizer.store.history.READ_S", 11.5)

    found = history.read(NOW - 6 * HOUR_S, day_before=hours_to_come(NOW, 6 * HOUR_S))[WEB]

    assert found.cpu.seconds == 6 * HOUR_S
    assert found.day_before.cpu.seconds == 6 * HOUR_S


def answer(demand, **changes):
    row = {"namespace": "shop", "pod": "web-0", "container": "app", "owner": "Deployment/web"}
    row["demand"] = b64encode(pack(demand)).decode()
    if demand.day_before:
        row["day_before"] = b64encode(pack(demand.day_before)).decode()
    return {"window_s": 6 * HOUR_S, "left_out": 0, "containers": [{**row, **changes}]}


def test_replicas_on_several_nodes_have_the_sum_of_their_days_before():
    cluster = ClusterDemand(Owners())
    cluster.add(answer(after(rest(), rest(0.6))), "n1")
    cluster.add(answer(after(rest(), rest(0.4)), pod="web-1"), "n2")
    cluster.add(answer(rest(), pod="web-2"), "n3")

    ((_, found),) = cluster.rows()
    assert found.demand.day_before.cpu.seconds == 2 * rest().cpu.seconds
    assert found.demand.cpu.seconds == 3 * rest().cpu.seconds


@pytest.mark.parametrize(
    "day_before", ["!", "AAAA", 7, b64encode(pack(learned([window()] * 99_999))).decode()]
)
def test_a_damaged_day_before_is_counted_as_damage(day_before):
    cluster = ClusterDemand(Owners())
    cluster.add(answer(rest(), day_before=day_before), "n1")

    assert (cluster.damaged, list(cluster.rows())) == (1, [])


def daily(days):
    """Return the steps of a container that is busy by day, from a Monday on."""
    (shape,) = (shape for shape in SHAPES if shape.name == "day and night")
    return steps_of_samples(shape.samples(days * DAY_S))[shape.name]


def test_the_rule_knows_in_the_night_what_the_morning_needs():
    steps = [step for step in daily(2) if step.at < DAY_S + NIGHT]
    rule = ThreadRule()
    for step in steps:
        rule.learn(step)
    blind = ThreadRule()
    for step in steps[-6:]:
        blind.learn(step)

    assert rule.sizing().cpu == pytest.approx(2.3, rel=0.1)
    assert blind.sizing().cpu < 0.6


def test_the_usual_rule_throttles_and_wastes_less_than_each_other_rule():
    containers = steps_of_samples(sample for shape in SHAPES for sample in shape.samples(4 * DAY_S))

    totals = {rule: total(own.values()) for rule, own in compare(containers, RULES).equal.items()}

    ours = totals.pop(OURS)
    for other in totals.values():
        assert ours.throttled_s < other.throttled_s
        assert ours.late_core_s < other.late_core_s
        assert ours.wasted_core_s < other.wasted_core_s
