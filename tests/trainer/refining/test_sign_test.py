import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_trainer.refining.sign_test import SignTest, evidence_of, interval, log_factor

WEIGHTED = st.floats(-1e6, 1e6)


@given(WEIGHTED)
def test_the_factors_of_both_signs_have_the_mean_1(weighted):
    mean = (math.exp(log_factor(weighted)) + math.exp(log_factor(-weighted))) / 2

    assert mean == pytest.approx(1.0)


@pytest.mark.parametrize("weighted", [-3.0, -0.1, 0.0, 0.7, 4.0])
def test_a_factor_is_the_formula(weighted):
    expected = math.exp(weighted) / math.cosh(weighted)

    assert math.exp(log_factor(weighted)) == pytest.approx(expected)


def test_each_of_many_equal_gains_at_most_doubles_the_evidence():
    assert 500 < evidence_of([1.0] * 10, 0.01) <= 2**10


def heavy(source):
    """Return a value with a heavy tail: the ratio of two normal ones."""
    return 0.1 * source.gauss(0, 1) / source.gauss(0, 1)


@pytest.mark.parametrize("draw", [heavy, lambda source: source.gauss(0, 0.1)])
def test_symmetric_noise_seldom_reaches_the_limit_however_often_one_looks(draw):
    source, limit, reached = random.Random(7), 20.0, 0
    for _ in range(2_000):
        test = SignTest(0.1)
        for _ in range(60):
            test.add(draw(source))
            if test.evidence >= limit:
                reached += 1
                break

    assert 0 < reached <= 2_000 / limit


def test_an_interval_holds_the_middle_and_excludes_what_is_far():
    random.seed(3)
    gains = [0.1 + random.gauss(0, 0.02) for _ in range(20)]

    bounds = interval(gains, 0.02, 0.05)

    assert 0.07 < bounds.low < 0.1 < bounds.high < 0.13


def test_an_interval_is_too_narrow_in_at_most_5_of_100_cases():
    random.seed(4)
    missed = 0
    for _ in range(500):
        gains = [random.gauss(0.1, 0.05) for _ in range(12)]
        bounds = interval(gains, 0.05, 0.05)
        missed += not bounds.low <= 0.1 <= bounds.high

    assert missed <= 25


def test_few_blocks_bound_nothing():
    bounds = interval([0.1, 0.1, 0.1], 0.01, 0.05)

    assert (bounds.low, bounds.high) == (-math.inf, math.inf)


def test_a_noise_of_zero_is_no_error():
    assert evidence_of([0.0, 0.0], 0.0) == 1.0
    assert evidence_of([0.01] * 12, 0.0) > 1_000
