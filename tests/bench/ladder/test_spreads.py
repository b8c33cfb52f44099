import pytest

from bench.ladder.spreads import Spread, percentile, summary


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1), (50, 50), (99, 99), (99.5, 100), (100, 100)]
)
def test_a_percentile_is_one_of_the_values(percent, expected):
    assert percentile(range(1, 101), percent) == expected


def test_a_percentile_of_one_value_is_that_value():
    assert percentile([7.0], 99.0) == 7.0


def test_a_percentile_takes_values():
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50.0)


def test_a_summary_does_not_depend_on_the_order_of_the_values():
    seen = summary([3.0, 1.0, 2.0])

    assert seen == {"p50": 2.0, "p90": 3.0, "p99": 3.0, "p99.9": 3.0, "max": 3.0, "mean": 2.0}


def test_a_summary_of_nothing_is_empty():
    assert summary([]) == {}


@pytest.mark.parametrize(
    ("own", "other", "is_apart"),
    [
        ((1.0, 2.0), (3.0, 4.0), True),
        ((3.0, 4.0), (1.0, 2.0), True),
        ((1.0, 3.0), (2.0, 4.0), False),
        ((1.0, 2.0), (2.0, 3.0), False),
        ((1.0,), (2.0, 3.0), False),
    ],
    ids=["below", "above", "overlaps", "touches", "one-run"],
)
def test_two_spreads_are_apart_where_no_values_overlap(own, other, is_apart):
    assert Spread(own).is_apart_from(Spread(other)) is is_apart
