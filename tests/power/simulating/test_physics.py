"""The model of power and slowdown at its edges."""

import pytest

from temper_plugin_power.simulating.intervals import interval
from temper_plugin_power.simulating.jobs import KINDS
from temper_plugin_power.simulating.physics import Machine, job_watts, power_left, speed

MACHINE = Machine(cores=32, idle_watts=100, max_watts=420)
SOLVER, SERVICE, _, ETL, CRAWLER = KINDS


def test_the_power_of_a_job_is_that_of_its_cores():
    assert job_watts(SOLVER, MACHINE) == 80.0
    assert job_watts(SERVICE, MACHINE) == pytest.approx(12.0)
    assert job_watts(CRAWLER, MACHINE) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("solvers", "cap_pct", "left"),
    [(0, 50, 1.0), (1, 50, 1.0), (2, 50, 110 / 160), (4, 100, 1.0), (4, 50, 110 / 320)],
)
def test_a_cap_cuts_what_is_above_it(solvers, cap_pct, left):
    assert power_left([SOLVER] * solvers, MACHINE, cap_pct) == pytest.approx(left)


@pytest.mark.parametrize(
    ("kind", "expected"), [(SOLVER, 0.4), (SERVICE, 0.7), (ETL, 0.88), (CRAWLER, 0.88)]
)
def test_a_job_loses_speed_by_its_sensitivity(kind, expected):
    assert speed(kind, 0.4) == pytest.approx(expected)
    assert speed(kind, 1.0) == 1.0


def test_an_interval_is_that_of_student():
    five = interval([1.0, 2.0, 3.0, 4.0, 5.0])

    assert five.mean == 3.0
    assert five.half == pytest.approx(2.776 * (2.5**0.5) / 5**0.5)
    assert interval([7.0]).half is None
    assert interval([7.0, 7.0]).half == 0.0


def test_an_interval_of_many_values_is_never_too_narrow():
    values = [float(number % 2) for number in range(1000)]

    assert interval(values).half > 1.96 * 0.5 / 1000**0.5
