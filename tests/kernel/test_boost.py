"""Boosted threads under the engine: their nice values are put back after each way to end a boost.

Nice values are read from the kernel.
"""

import sys
from pathlib import Path

import pytest

from tests.kernel.guest import Walked, assert_held, walk_in_guest

BOOST = Path(__file__).parent / "boost"
CLAIMS = {
    "boosted": "a thread of the group has nice -5, and no other thread has another nice value",
    "told": "/explain says so",
    "child": "a child of the program has nice 0",
    "safe_mode": "in safe mode all nice values are as before",
    "boosted_again": "after it the thread is boosted again",
    "engine_killed": "without the engine all nice values are as before",
    "record": "an agent that is killed leaves a record of the boost",
    "next_agent": "the next agent restores the nice values at its start",
    "stopped": "an agent that is stopped restores them",
    "boosted_by_the_last": "another agent boosts the thread again",
    "restored": "and temper restore restores them after that agent was killed",
}


@pytest.fixture(scope="module")
def boosted(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    share = tmp_path_factory.mktemp("boost")
    machine = ("--cpus", "4", "--timeout", "3600")
    return walk_in_guest(share, machine, (sys.executable, BOOST))


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_boost_is_given_and_taken_back(claim: str, boosted: Walked):
    assert_held(claim, CLAIMS, boosted)
