"""Advice for programs of many shapes that use the same on average."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.cpu import arithmetic, round_up
from temper_plugin_rightsizer.advice.memory import MIB
from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.advice.records import Confidence, Resources, Verdict
from temper_plugin_rightsizer.demand.growth import Growth
from temper_plugin_rightsizer.demand.interval import Counts
from tests.rightsizer.shapes import learned, over_hours, window

UNSET = Resources()
LAZY = [(f"lazy-{number}", 0.29) for number in range(4)]
HOT = [("hot", 0.99), ("helper", 0.17)]


def cpu_of(make, current=UNSET, **counts):
    demand = over_hours(make)
    demand.counts = Counts(**counts)
    advice = advise(demand, current)
    return (
        advice.verdict,
        advice.recommended.cpu_request_millis,
        advice.recommended.cpu_limit_millis,
    )


def test_four_lazy_threads_share_and_one_hot_thread_has_a_core():
    """Both use 1.16 CPUs. A mean cannot tell them apart."""
    lazy, hot = over_hours(lambda _: window(*LAZY)), over_hours(lambda _: window(*HOT))

    assert lazy.cpu.mean() == pytest.approx(hot.cpu.mean(), rel=0.01)
    assert advise(lazy, UNSET).verdict is Verdict.SHARED
    assert advise(lazy, UNSET).recommended.cpu_request_millis in range(1400, 1560)
    assert advise(hot, UNSET).verdict is Verdict.EXCLUSIVE
    assert advise(hot, UNSET).recommended.cpu_request_millis in range(1200, 1250)
    assert advise(hot, UNSET).hot_threads == ("hot",)


@given(
    used=st.floats(0.001, 60.0),
    hot=st.integers(0, 2),
    margin=st.sampled_from([1.0, 1.1, 1.15, 1.2, 1.25, 1.3, 1.5, 2.0]),
)
@example(used=0.0181, hot=0, margin=1.1)
@example(used=0.1538, hot=0, margin=1.3)
def test_the_printed_arithmetic_leads_to_the_request(used, hot, margin):
    request = round_up(1000 * hot + margin * used * 1000)

    printed = arithmetic(used, request, AdviceOptions(margin=margin), hot)

    left, right = printed.split(" = ")
    product, _, rounded = right.partition(", so ")
    *added, factors = left.split(" + ")
    factor, rest = factors.split(" x ")
    whole = sum(map(float, added)) + float(factor) * float(rest)
    assert float(product) == pytest.approx(whole, rel=1e-5)
    assert round_up(1000 * whole) == request
    assert float(rounded or product) == request / 1000


@pytest.mark.parametrize(
    ("used", "request_millis", "printed"),
    [
        (0.153, 200, "1.25 x 0.153 = 0.19125, so 0.2"),
        (0.288, 360, "1.25 x 0.288 = 0.36"),
        (0.0, 10, "1.25 x 0 = 0, so 0.01"),
    ],
)
def test_a_request_that_is_rounded_up_says_so(used, request_millis, printed):
    assert arithmetic(used, request_millis, AdviceOptions()) == printed


def test_the_reason_has_the_arithmetic():
    reason = advise(over_hours(lambda _: window(("main", 0.3))), UNSET).reasons[0]

    assert re.search(r"is (0\.\d{3}) CPUs .*: 1\.25 x \1 = 0\.\d+, so 0\.\d+$", reason)


@pytest.mark.parametrize(
    ("make", "verdict", "requests"),
    [
        pytest.param(
            lambda number: window(("gc", 1.0 if number % 30 == 0 else 0.0), ("main", 0.3)),
            Verdict.SHARED,
            range(370, 420),
            id="bursts of a garbage collector in 3 % of the time",
        ),
        pytest.param(
            lambda number: window(("main", 0.1), ("cron", 1.0 if number % 360 < 6 else 0.0)),
            Verdict.SHARED,
            range(120, 150),
            id="a spike of a minute in each hour",
        ),
        pytest.param(
            lambda number: window((f"{'ab'[number % 2]}", 0.95)),
            Verdict.EXCLUSIVE,
            range(1000, 1010),
            id="two hot threads that alternate",
        ),
        pytest.param(
            lambda number: window((f"worker-{number // 60}", 0.95), idle=0.2),
            Verdict.EXCLUSIVE,
            range(1250, 1280),
            id="a container that restarts every ten minutes",
        ),
        pytest.param(
            lambda number: window(*((f"pool-{n}", (n + number) % 8 / 10) for n in range(8))),
            Verdict.SHARED,
            range(3450, 3750),
            id="a pool whose threads are busy in turn",
        ),
        pytest.param(
            lambda _: window(("a", 1.0), ("b", 1.0), ("c", 0.9), idle=0.1),
            Verdict.EXCLUSIVE,
            range(3120, 3150),
            id="three hot threads",
        ),
        pytest.param(
            lambda _: window(idle=0.0), Verdict.SHARED, range(10, 11), id="an idle program"
        ),
    ],
)
def test_the_shape_of_the_demand_decides(make, verdict, requests):
    found, request, limit = cpu_of(make)

    assert found is verdict
    assert request in requests
    assert limit is None


def test_a_throttled_hot_thread_gets_a_higher_limit():
    _, request, limit = cpu_of(
        lambda _: window(("hot", 0.95)),
        Resources(cpu_request_millis=500, cpu_limit_millis=1000),
        periods=1000,
        throttled_periods=300,
        throttled_s=20.0,
    )

    assert (request, limit) == (1000, 1500)


def test_a_limit_is_never_below_the_request():
    _, _, limit = cpu_of(lambda _: window(("hot", 0.95), idle=0.5), Resources(cpu_limit_millis=800))

    assert limit in range(1625, 1665)


def test_a_limit_that_does_not_throttle_stays():
    limits = Resources(cpu_request_millis=130, cpu_limit_millis=900)

    assert cpu_of(lambda _: window(idle=0.1), limits, periods=9, throttled_periods=0)[2] == 900


def test_what_fits_is_kept_as_it_is():
    demand = over_hours(lambda _: window(idle=0.4))
    demand.memory.add(100 * MIB, 60)
    current = Resources(500, None, 120 * MIB, None)

    advice = advise(demand, current)

    assert advice.keeps
    assert advice.recommended == current
    assert advice.reasons[-1] == "keep as it is"


@pytest.mark.parametrize(
    ("seconds", "confidence"),
    [(3599, Confidence.LOW), (3600, Confidence.MEDIUM), (6 * 3600, Confidence.HIGH)],
)
def test_confidence_follows_the_measured_time(seconds, confidence):
    assert advise(learned([window(idle=0.1)], seconds), UNSET).confidence is confidence


def memory_of(current, **counts):
    demand = over_hours(lambda _: window(idle=0.1), hours=1)
    demand.memory.add(200 * MIB, 3600)
    demand.counts = Counts(peak_bytes=210 * MIB, **counts)
    return advise(demand, current)


def test_the_memory_request_covers_the_peak():
    assert memory_of(UNSET).recommended.memory_request_bytes in range(252 * MIB, 256 * MIB)


@pytest.mark.parametrize("incident", ["oom_kill", "max"])
def test_a_kill_and_a_near_miss_raise_the_memory_limit(incident):
    current = Resources(memory_request_bytes=100 * MIB, memory_limit_bytes=210 * MIB)

    advice = memory_of(current, **{incident: 2})

    assert advice.recommended.memory_limit_bytes == 315 * MIB
    assert advice.recommended.memory_request_bytes >= 210 * MIB
    assert any(reason.startswith("2 ") for reason in advice.reasons)


def test_unaccounted_memory_gets_no_advice():
    advice = advise(over_hours(lambda _: window(idle=0.1), hours=1), UNSET)

    assert advice.recommended.memory_request_bytes is None
    assert "no cgroup accounts for its memory" in advice.reasons


@given(st.floats(0, 1e6))
def test_a_size_is_rounded_up_to_ten_millicores(millis):
    rounded = round_up(millis)

    assert rounded % 10 == 0
    assert rounded >= max(millis, 10) - 0.001
    assert rounded - millis <= 10.001


@pytest.mark.parametrize(
    "choice",
    [{"percentile": 0.4}, {"margin": 0.9}, {"throttle_target": 0.2}, {"hot": 1.1}],
)
def test_a_choice_out_of_range_is_refused(choice):
    with pytest.raises(ValueError, match=next(iter(choice))):
        AdviceOptions(**choice)


LEAK = Growth(12 * MIB, 6 * 3600, 200 * MIB, 272 * MIB)


def test_a_leak_raises_nothing_even_after_kills():
    current = Resources(memory_request_bytes=256 * MIB, memory_limit_bytes=512 * MIB)
    demand = over_hours(lambda _: window(*LAZY))
    demand.counts = Counts(peak_bytes=500 * MIB, oom_kill=2)

    advice = advise(demand, current, leak=LEAK)

    assert advice.recommended.memory_request_bytes == 256 * MIB
    assert advice.recommended.memory_limit_bytes == 512 * MIB
    assert (advice.leak.bytes_per_hour, advice.leak.until_limit_s) == (12 * MIB, 20 * 3600)
    assert "12.0 MiB/h, and meets the limit of 512Mi in 20.0 h" in " ".join(advice.reasons)
    assert "2 OOM kills, which the leak explains" in advice.reasons
    assert advise(demand, current).recommended.memory_limit_bytes == 768 * MIB


def test_a_leak_without_a_request_says_that_the_advice_does_not_last():
    demand = over_hours(lambda _: window(*LAZY))
    demand.counts = Counts(peak_bytes=300 * MIB)

    advice = advise(demand, UNSET, leak=LEAK)

    assert advice.recommended.memory_request_bytes == 360 * MIB
    assert advice.leak.until_limit_s is None
    assert any("until the leak has passed it" in reason for reason in advice.reasons)


def test_a_start_up_sets_no_request_and_its_kills_raise_the_limit():
    current = Resources(memory_request_bytes=256 * MIB, memory_limit_bytes=512 * MIB)
    demand = over_hours(lambda _: window(*LAZY))
    demand.counts = Counts(peak_bytes=200 * MIB)
    start = learned([window(("jit", 1.0), ("main", 0.9))] * 6)
    start.counts = Counts(peak_bytes=500 * MIB, oom_kill=1)
    demand.startup = start

    advice = advise(demand, current)

    assert advice.verdict is Verdict.SHARED
    assert advice.recommended.cpu_request_millis in range(1400, 1560)
    assert advice.recommended.memory_limit_bytes == 768 * MIB
    assert any("1 min of start-up used up to 1.9" in reason for reason in advice.reasons)
