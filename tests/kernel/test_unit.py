"""The agent enforces, swaps and ends under the unit of a plain host, bounds and rights included."""

from pathlib import Path

import pytest

from tests.kernel.guest import LIFE, PYTHON, Walked, assert_held, walk_in_guest

UNIT = Path(__file__).parent / "unit"
UNDER_LOAD = ("system_not_starved", "fenced_not_starved", "nobody_starved", "not_ejected")
"""The claims of the walk's minute of load, which is left out here."""
CLAIMS = {name: claim for name, claim in LIFE.items() if name not in (*UNDER_LOAD, "in_place")}


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    share = tmp_path_factory.mktemp("unit")
    machine = ("--cpus", "8", "--timeout", "3000")
    return walk_in_guest(share, machine, (*PYTHON, UNIT))


@pytest.mark.parametrize("claim", CLAIMS)
def test_under_the_unit_of_a_plain_host(claim: str, confined: Walked):
    assert_held(claim, CLAIMS, confined)
