"""The limit of a package: within its maximum, above a floor, and never above the former one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_power.node.limits import limit_of
from temper_plugin_power.node.spec_file import CapSpec

MAX = 200_000_000
BEFORE = 150_000_000


def limit(watts=None, percent=None, max_uw=MAX, before_uw=BEFORE):
    return limit_of(CapSpec(watts, percent, at=0.0), max_uw, before_uw)


@pytest.mark.parametrize(
    ("spec", "uw"),
    [
        ({"percent": 60}, 120_000_000),
        ({"watts": 90, "percent": 60}, 90_000_000),
        ({"watts": 40}, 40_000_000),
        ({"watts": 39}, 40_000_000),
        ({"percent": 1}, 40_000_000),
        ({"watts": 149.9}, 149_900_000),
        ({"watts": 150}, None),
        ({"percent": 100}, None),
        ({"watts": 5000}, None),
        ({}, None),
    ],
)
def test_watts_win_and_bounds_hold(spec, uw):
    assert limit(**spec).uw == uw


def test_a_limit_that_was_raised_says_so():
    assert limit(watts=39).note == "raised to 20% of the maximum"
    assert limit(watts=40).note == ""


def test_without_a_maximum_nothing_is_set():
    refused = limit(watts=100, max_uw=0)

    assert (refused.uw, refused.is_blocked) == (None, True)


@given(st.floats(1, 1e5), st.integers(1, 10**9), st.integers(0, 10**9))
def test_no_limit_is_above_the_former_one_or_the_maximum(watts, max_uw, before_uw):
    uw = limit(watts=watts, max_uw=max_uw, before_uw=before_uw).uw

    assert uw is None or uw < min(max_uw, before_uw)
