"""Working sets that grow without end, and those that only look so."""

import math
from random import Random

import pytest

from temper_plugin_rightsizer.advice.leaks import leak_of
from temper_plugin_rightsizer.demand.growth import HOUR_S, Floor, growth

MIB = 1024 * 1024
STEP_S = 900
DAY_H = 24


def floors_of(level_mib, hours=6.0, *, starts=()):
    """Return the floors of a program with ``level_mib(hour)`` MiB. *starts* are hours."""
    times = range(0, int(hours * HOUR_S) + 1, STEP_S)
    return {
        at: Floor(
            round(level_mib(at / HOUR_S) * MIB),
            any(at <= start * HOUR_S < at + STEP_S for start in starts),
        )
        for at in times
    }


def test_a_leak_has_its_rate_and_its_levels():
    found = growth(floors_of(lambda hour: 200 + 12 * hour))

    assert found.bytes_per_hour == pytest.approx(12 * MIB, rel=0.1)
    assert (found.first_bytes, found.last_bytes) == (200 * MIB, 272 * MIB)
    assert found.seconds == 6 * HOUR_S


def test_a_leak_below_a_busy_load_is_found():
    random = Random(1)
    found = growth(floors_of(lambda hour: 200 + 20 * hour + random.choice((0, 5, 80))))

    assert found.bytes_per_hour == pytest.approx(20 * MIB, rel=0.2)


def test_a_leak_of_the_last_two_days_is_found_after_a_quiet_week():
    days = floors_of(lambda hour: 300 + 10 * max(hour - 7 * DAY_H, 0), 9 * DAY_H)

    assert growth(days).bytes_per_hour == pytest.approx(10 * MIB, rel=0.1)


@pytest.mark.parametrize(
    "level_mib",
    [
        pytest.param(lambda _: 300, id="constant"),
        pytest.param(lambda hour: 300 + 20 * math.log1p(60 * hour), id="a cache that fills"),
        pytest.param(lambda hour: 300 + 100 * (hour > 3), id="one step"),
        pytest.param(lambda hour: 300 + 50 * (hour % 1), id="a saw"),
        pytest.param(lambda hour: 300 - 10 * hour, id="shrinking"),
        pytest.param(lambda hour: 300 + 0.5 * hour, id="noise"),
    ],
)
def test_other_shapes_are_no_leak(level_mib):
    assert growth(floors_of(level_mib)) is None


def test_the_load_of_days_and_nights_is_no_leak():
    floors = floors_of(lambda hour: 300 + 100 * math.sin(hour / DAY_H * 2 * math.pi), 5 * DAY_H)

    assert growth(floors) is None


def test_a_short_run_is_not_judged():
    assert growth(floors_of(lambda hour: 200 + 50 * hour, 4)) is None
    assert growth({}) is None


def test_a_restart_begins_a_new_run():
    """Each run leaks. The first would hide it, as the second begins below its end."""
    saw = floors_of(lambda hour: 200 + 12 * (hour % 7), 13, starts=(7,))

    found = growth(saw)

    assert found.bytes_per_hour == pytest.approx(12 * MIB, rel=0.1)
    assert found.seconds < 6 * HOUR_S
    assert growth(floors_of(lambda hour: 200 + 12 * (hour % 4), 12, starts=(4, 8))) is None


def test_the_fastest_replica_stands_for_a_workload_of_which_half_leaks():
    slow, fast = (growth(floors_of(lambda hour, r=rate: 100 + r * hour)) for rate in (10, 30))

    assert leak_of([slow, fast, None, None]) == (
        fast,
        ("the memory of 2 of 4 replicas grows without end",),
    )
    assert leak_of([slow, None, None])[0] is None
    assert leak_of([slow]) == (slow, ())
    assert leak_of([None]) == leak_of([]) == (None, ())
