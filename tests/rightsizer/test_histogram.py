"""Histograms of demand: percentiles, sums, and their bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_rightsizer.demand.histogram import GROWTH, DemandHistogram

LEAST = 0.001
VALUES = st.floats(0, 512)
TIMES = st.lists(st.tuples(VALUES, st.integers(1, 10_000)), min_size=1, max_size=40)


def histogram_of(times):
    histogram = DemandHistogram(LEAST)
    for value, seconds in times:
        histogram.add(value, seconds)
    return histogram


def exact_percentile(times, share):
    passed, wanted = 0, share * sum(seconds for _, seconds in times)
    for value, seconds in sorted(times):
        passed += seconds
        if passed >= wanted:
            return value
    raise AssertionError


@given(TIMES, st.floats(0.01, 1.0))
def test_a_percentile_is_at_most_five_percent_too_large(times, share):
    exact = exact_percentile(times, share)

    found = histogram_of(times).percentile(share)

    if exact < LEAST:
        assert found == 0
    else:
        assert exact * 0.999999 <= found <= exact * GROWTH * 1.000001


@given(TIMES, TIMES)
def test_merged_histograms_hold_the_times_of_both(ours, theirs):
    both = histogram_of(ours)
    both.merge(histogram_of(theirs))

    assert both == histogram_of([*ours, *theirs])
    assert both.seconds == sum(seconds for _, seconds in [*ours, *theirs])


@given(TIMES)
def test_a_histogram_is_read_back_from_its_bytes(times):
    histogram = histogram_of(times)

    assert DemandHistogram.decode(LEAST, histogram.encode()) == histogram


@given(st.binary(max_size=200))
def test_any_bytes_are_a_histogram_or_are_refused(encoded):
    try:
        histogram = DemandHistogram.decode(LEAST, encoded)
    except ValueError:
        return
    assert histogram.percentile(1.0) >= 0
    assert DemandHistogram.decode(LEAST, histogram.encode()) == histogram


def test_histograms_of_other_units_are_not_merged():
    with pytest.raises(ValueError, match="cannot merge"):
        DemandHistogram(1.0).merge(DemandHistogram(2.0))


def test_the_mean_and_the_peak_are_those_of_the_time():
    histogram = histogram_of([(1.0, 100), (3.0, 10)])

    assert histogram.mean() == pytest.approx(130 / 110, rel=0.03)
    assert histogram.peak() == pytest.approx(3.0, rel=0.05)
    assert DemandHistogram(LEAST).mean() == DemandHistogram(LEAST).peak() == 0
    assert DemandHistogram(LEAST, {3: 0}).mean() == 0
