"""How long to stay away, and when to give up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.scheduler.failure.backoff import Backoff


def test_without_a_failure_there_is_no_wait():
    assert Backoff(10.0, 600.0, 5).delay_s(0.0) == 0.0


def test_the_wait_doubles_up_to_its_limit():
    backoff = Backoff(10.0, 60.0, 99, chance=lambda: 0.5)

    delays = []
    for moment in range(5):
        backoff.failed(float(moment))
        delays.append(backoff.delay_s(float(moment)))

    assert delays == [10.0, 20.0, 40.0, 60.0, 60.0]


@given(st.floats(0.0, 1.0))
def test_the_jitter_is_a_fifth_either_way(chance):
    backoff = Backoff(10.0, 600.0, 5, chance=lambda: chance)

    backoff.failed(0.0)

    assert backoff.delay_s(0.0) == pytest.approx(8.0 + 4.0 * chance)


def test_the_budget_is_spent_within_an_hour():
    backoff = Backoff(10.0, 600.0, 3)
    for moment in (0.0, 100.0):
        backoff.failed(moment)
    assert not backoff.is_exhausted(100.0)

    backoff.failed(3599.0)

    assert backoff.is_exhausted(3599.0)


def test_failures_are_forgiven_after_an_hour():
    backoff = Backoff(10.0, 600.0, 3)
    for moment in (0.0, 100.0, 3700.0):
        backoff.failed(moment)

    assert backoff.recent(3700.0) == 1
    assert not backoff.is_exhausted(3700.0)


def test_forgetting_starts_afresh():
    backoff = Backoff(10.0, 600.0, 1)
    backoff.failed(0.0)

    backoff.forget()

    assert not backoff.is_exhausted(0.0)
