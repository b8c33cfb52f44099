"""Pods that come, go and change: which engine changes it takes, and how soon threads follow.

Time is the guest's own (``vm/run --virtual-time``): how soon is then no matter of the host.
"""

import sys
from pathlib import Path

import pytest

from tests.kernel.guest import Walked, assert_held, walk_in_guest

CHURN = Path(__file__).parent / "churn"
CHANGES, ALL_CHANGES = 60, 1_000
CLAIMS = {
    "budget": "the changes take at most five other engines",
    "followed": "every thread of every pod gets into its planned layer, by the engine's own record",
    "in_time": "within a second of the change",
    "newborn": "new threads are there before they have used 10 ms of CPU, in the median",
    "settled": "in the end no thread is astray",
}


@pytest.fixture(scope="module")
def churned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Walked:
    share = tmp_path_factory.mktemp("churn")
    changes = ALL_CHANGES if request.config.getoption("--all-faults") else CHANGES
    machine = ("--virtual-time", "--cpus", "8", "--timeout", "5000")
    return walk_in_guest(share, machine, (sys.executable, CHURN, "--changes", str(changes)))


@pytest.mark.parametrize("claim", CLAIMS)
def test_while_pods_come_go_and_change(claim: str, churned: Walked):
    assert_held(claim, CLAIMS, churned)
