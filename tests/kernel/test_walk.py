"""The walks of examples/demo, claim by claim, on the real kernel with the real engine."""

import pytest

from tests.kernel.guest import LIFE, SATURATION, Walked, assert_held


@pytest.mark.parametrize("claim", LIFE)
def test_through_the_agents_life(claim: str, life: Walked):
    assert_held(claim, LIFE, life)


@pytest.mark.parametrize("claim", SATURATION)
def test_with_every_tier_saturated(claim: str, saturation: Walked):
    assert_held(claim, SATURATION, saturation)


def test_a_walk_says_by_its_exit_code_whether_all_of_it_held(life: Walked):
    all_held = life.outcomes.keys() == LIFE.keys() and all(o.holds for o in life.outcomes.values())

    assert life.exit_code == (0 if all_held else 1)
