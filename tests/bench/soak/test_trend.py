import random

import pytest

from bench.soak.trend import BLOCKS, blocks_of, trend_of

HOUR_S = 3600.0
DRAWS = 300


def series_of(value, samples=400, length_s=HOUR_S):
    step_s = length_s / samples
    return [(number * step_s, value(number * step_s / HOUR_S)) for number in range(samples)]


def test_a_line_has_its_slope_and_no_width():
    trend = trend_of(series_of(lambda hours: 50 + 3 * hours))

    assert trend.per_hour == pytest.approx(3)
    assert trend.half_width == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("slope", [0.0, 2.0])
def test_the_interval_holds_the_slope_in_95_of_100_noisy_series(slope):
    noise = random.Random(7)

    trends = [
        trend_of(series_of(lambda hours: 50 + slope * hours + noise.gauss(0, 1)))
        for _ in range(DRAWS)
    ]

    held = sum(trend.least <= slope <= trend.most for trend in trends) / DRAWS
    assert held == pytest.approx(0.95, abs=0.04)


@pytest.mark.parametrize(
    ("slope", "noise", "verdict"),
    [
        (3, 0.1, "grows"),
        (0.2, 0.1, "does not grow"),
        (-3, 0.1, "does not grow"),
        (1, 5, "not decided"),
    ],
)
def test_the_interval_decides(slope, noise, verdict):
    drawn = random.Random(1)
    trend = trend_of(series_of(lambda hours: slope * hours + drawn.gauss(0, noise)))

    assert trend.verdict(allowed_per_hour=1) == verdict


def test_the_parts_hold_all_samples_in_order():
    blocks = blocks_of(series_of(lambda hours: hours))

    assert len(blocks) == BLOCKS
    values = [value for block in blocks for value in block.values]
    assert values == sorted(values)
    assert len(values) == 400


@pytest.mark.parametrize("samples", [0, 1, BLOCKS - 1])
def test_a_series_that_does_not_fill_the_parts_is_refused(samples):
    with pytest.raises(ValueError, match="samples"):
        trend_of(series_of(lambda hours: hours, samples=samples) if samples else [])
