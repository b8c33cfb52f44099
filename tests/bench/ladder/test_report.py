import pytest

from bench.ladder.measures import MEASURES
from bench.ladder.report import against, losses, report
from bench.ladder.rows import rows
from bench.ladder.spreads import Spread

P99, DELAY = MEASURES["p99"], MEASURES["delay"]


def test_a_table_has_the_median_and_the_spread(make_record):
    text = report([make_record("stock", seed=seed, p99=p99) for seed, p99 in enumerate((9, 7, 8))])

    assert "| 8.00 (7.00-9.00) |" in text


def test_a_table_has_no_column_that_no_run_has(make_record):
    text = report([make_record("tiers")])

    assert MEASURES["background"].title in text
    assert MEASURES["bursts"].title not in text


def test_a_burst_has_a_column_where_there_is_one(make_record):
    text = report([make_record("tiers", others={"burst": {"delay_ratio": 0.25}})])

    assert MEASURES["bursts"].title in text
    assert "| 0.25 |" in text


def test_the_longest_wait_of_log_writers_has_its_spread(make_record):
    noise = [{"noise": {"run_ms": 1.0, "longest_wait_ms": ms}} for ms in (20.0, 90.0, 30.0)]
    text = report([make_record("profile", seed=n, others=each) for n, each in enumerate(noise)])

    assert MEASURES["noise_wait"].title in text
    assert "| 30 (20-90) |" in text


def test_one_run_shows_no_spread(make_record):
    assert "| 8.00 |" in report([make_record("stock")])


def test_the_origin_names_kernel_engine_plan_and_boots(make_record):
    text = report([make_record("stock"), make_record("tiers", boot="b008")])

    assert "- kernel: 6.18.15\n" in text
    assert "- engine: 1.1.4\n" in text
    assert "- boots: b007, b008\n" in text
    assert "- hash of the plan: tiers ab12\n" in text


def test_an_engine_that_was_not_attached_throughout_stands_out(make_record):
    assert "**not throughout**" in report([make_record("tiers", scheduler="changed")])


@pytest.mark.parametrize(
    ("own", "stock", "told"),
    [
        ((4.0, 4.1), (8.0, 8.4), "2.0"),
        ((4.0, 8.0), (7.0, 8.0), "~ 1.2"),
        ((4.0,), (8.0,), "~ 2.0"),
        ((10.0, 10.2), (8.0, 8.2), "0.8"),
        ((0.001, 0.001), (0.002, 0.003), "both 0"),
    ],
    ids=["better", "overlapping", "one-run", "worse", "below-resolution"],
)
def test_a_factor_says_whether_it_is_within_the_spread(own, stock, told):
    assert against(P99, Spread(own), Spread(stock)) == told


def test_a_factor_to_nothing_is_bounded_by_the_resolution():
    assert against(DELAY, Spread((0.0, 0.0)), Spread((0.5, 0.6))) == "5500"


def test_a_factor_takes_both():
    assert against(P99, None, Spread((1.0,))) == "-"


def test_a_losing_case_is_told_with_both_figures(make_record):
    stock, own = rows(
        [make_record("stock", seed=seed) for seed in (1, 2)]
        + [make_record("tiers", seed=seed, p99=12.0) for seed in (1, 2)]
    )

    assert list(losses(own, stock)) == [
        "weight 8, tiers: p99, ms 12.00 against 8.00, beyond the spread"
    ]


@pytest.mark.parametrize(
    ("clock", "told"),
    [("virtual", "less than a hand-over between virtual CPUs"), ("real", "within the spread")],
)
def test_half_a_millisecond_is_nothing_to_an_emulated_cpu(make_record, clock, told):
    stock, own = rows(
        [make_record("stock", clock=clock, p99=1.0), make_record("tiers", clock=clock, p99=1.4)]
    )

    assert list(losses(own, stock)) == [f"weight 8, tiers: p99, ms 1.40 against 1.00, {told}"]


def test_unanswered_requests_are_a_loss(make_record):
    stock, own = rows([make_record("stock"), make_record("tiers", unanswered=3)])

    assert list(losses(own, stock)) == ["weight 8, tiers: 3 requests without an answer"]


def test_a_report_of_one_arm_loses_nothing(make_record):
    assert report([make_record("stock")]).endswith("- none")
