"""How long a climb takes yet, at most."""

import tomllib

import pytest

from temper_plugin_trainer.refining.climb import Plan, Reading, climb
from temper_plugin_trainer.refining.time_left import most_left_s, phase_of
from temper_plugin_trainer.refining.variants import started, stock, tiers_only
from tests.trainer.refining.surfaces import PROFILE

EACH_S = 10.0
TABLE = tomllib.loads(PROFILE)


def visits_of(plan, value):
    """Return every visit of a climb in which each measurement has the value that *value* gives."""
    steps = climb(plan)
    visits = [next(steps)]
    try:
        while True:
            visits.append(steps.send(Reading(value(visits[-1].variant))))
    except StopIteration:
        return visits


def a_plan(**options):
    given = {"trials": 2, "blocks": 8, "stock": stock(TABLE), "stock_blocks": 3}
    return Plan(tiers_only(TABLE), started(TABLE), **{**given, **options})


def value_of(plan):
    """Return a value with which the whole profile is kept, and nothing after it."""
    values = iter(range(1, 100_000))

    def value(variant):
        noise = 1 + next(values) % 7 / 1000
        return noise * (1.0 if variant.key == plan.start.key else 2.0)

    return value


def test_the_time_left_is_never_less_than_it_takes_and_ends_at_that_of_the_last():
    plan = a_plan()
    visits = visits_of(plan, value_of(plan))

    for index, visit in enumerate(visits):
        assert most_left_s(plan, visit, EACH_S) >= EACH_S * (len(visits) - index) - EACH_S
    assert most_left_s(plan, visits[-1], EACH_S) == 2 * EACH_S


def test_each_phase_has_its_name_and_its_blocks():
    plan = a_plan()

    phases = dict.fromkeys(phase_of(plan, visit) for visit in visits_of(plan, value_of(plan)))

    named = [(phase.name, phase.blocks) for phase in phases]
    assert named == [
        ("the tier alone", 9),
        ("trial 1", 8),
        ("trial 2", 8),
        ("the confirmation", 10),
        ("the stock scheduler", 3),
    ]


@pytest.mark.parametrize(("minutes", "seconds"), [(1.0, 60.0), (0.0, 0.0), (-5.0, 0.0)])
def test_minutes_bound_the_trials_and_not_the_confirmation(minutes, seconds):
    plan = a_plan(stock_blocks=0)
    first = visits_of(plan, value_of(plan))[0]

    assert most_left_s(plan, first, EACH_S, minutes) == seconds + 20 * EACH_S
