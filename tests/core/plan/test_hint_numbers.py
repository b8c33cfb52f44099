"""The numbers of layers: each keeps its own for as long as there are others to give."""

import pytest

from temper_core.errors import PlanError
from temper_core.plan.hint_numbers import hints_for
from temper_core.records.steering import (
    FIRST_GROUP_HINT,
    FIXED_HINTS,
    LARGEST_HINT,
)

MOST = LARGEST_HINT - FIRST_GROUP_HINT


def group(number):
    return f"p.g{number}.normal"


@pytest.fixture
def all_given():
    """Every number was given once, to one group after the other, of which none is left."""
    known = dict(FIXED_HINTS)
    for number in range(MOST):
        known.update(hints_for([group(number)], known))
    return known


def test_a_known_layer_keeps_its_number_and_a_new_one_gets_the_next():
    known = {**FIXED_HINTS, "a": 16, "b": 20}

    assert hints_for(["new", "b"], known) == {"b": 20, "new": 21}


def test_nobody_takes_a_fixed_number():
    assert hints_for(["a", "open"], {"a": 2}) == {"open": 2, "a": 16}


def test_a_number_is_given_again_only_when_all_are_in_use(all_given):
    assert sorted(all_given.values()) == [*range(1, 8), *range(FIRST_GROUP_HINT, LARGEST_HINT)]

    assert hints_for(["new"], all_given) == {"new": FIRST_GROUP_HINT}


def test_a_layer_that_comes_back_does_not_share_the_number_of_another(all_given):
    known = {**hints_for(["new"], all_given), **all_given}

    found = hints_for(["new", group(0), group(1)], known)

    assert found == {"new": 16, group(1): 17, group(0): 18}


def test_more_layers_than_numbers_are_refused(all_given):
    with pytest.raises(PlanError, match="no hint left for layer 'one more'"):
        hints_for([*all_given, "one more"], all_given)
