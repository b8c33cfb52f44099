"""From counters of energy to watts: the end of the counter, resets and gaps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_power.node.energy import EnergyMeter, used_between

RANGE = 262_143_328_850


@pytest.mark.parametrize(
    ("before", "after", "range_uj", "used"),
    [
        (10, 10, 100, 0),
        (10, 30, 100, 20),
        (90, 5, 100, 15),
        (100, 0, 100, 0),
        (90, 5, 0, None),
        (101, 5, 100, None),
    ],
)
def test_a_counter_that_has_fallen_began_again_after_its_range(before, after, range_uj, used):
    assert used_between(before, after, range_uj) == used


@given(st.integers(0, RANGE), st.integers(0, RANGE - 1))
def test_the_energy_is_the_same_wherever_the_counter_begins(start, used):
    after = (start + used) % RANGE

    assert used_between(start, after, RANGE) in (used, used - RANGE, used + RANGE)
    assert used_between(start, after, RANGE) >= 0


def test_power_is_the_energy_by_the_time():
    meter = EnergyMeter()

    assert meter.watts(10.0, 1_000_000, RANGE) is None
    assert meter.watts(15.0, 501_000_000, RANGE) == 100.0
    assert meter.watts(20.0, 501_000_000, RANGE) == 0.0


def test_the_end_of_the_counter_is_no_gap():
    meter = EnergyMeter()
    meter.watts(0.0, RANGE - 100_000_000, RANGE)

    assert meter.watts(2.0, 100_000_000, RANGE) == 100.0


@pytest.mark.parametrize(("gap_s", "is_known"), [(262.0, True), (263.0, False)])
def test_a_gap_in_which_the_counter_may_have_ended_twice_is_not_known(gap_s, is_known):
    meter = EnergyMeter()
    meter.watts(0.0, 0, RANGE)

    assert (meter.watts(gap_s, 1_000_000, RANGE) is not None) == is_known


@pytest.mark.parametrize(("joules", "watts"), [(5000, 1000.0), (5001, None)])
def test_more_than_a_package_can_use_is_a_counter_that_was_reset(joules, watts):
    meter = EnergyMeter()
    meter.watts(0.0, 0, RANGE)

    assert meter.watts(5.0, joules * 1_000_000, RANGE) == watts


def test_two_readings_at_one_time_have_no_power():
    meter = EnergyMeter()
    meter.watts(1.0, 0, RANGE)

    assert meter.watts(1.0, 5, RANGE) is None
