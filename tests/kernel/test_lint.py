"""What the linter tells of a node on which things really go wrong, and of one on which all is well.

Time is the guest's own (``vm/run --virtual-time``): a busy host makes nobody wait in there.
"""

import sys
from pathlib import Path

import pytest

from tests.kernel.guest import Walked, assert_held, walk_in_guest

LINT = Path(__file__).parent / "lint"
HEALTHY_S = 600
CPUS = 10
CLAIMS = {
    "healthy": "a healthy mixed load breaks no promise, in no window",
    "siblings": "two hot threads of a fenced tier on one core are told",
    "outside": "so is a thread of it that is bound outside of the fence",
    "inside": "and best effort that is bound into the fence",
    "misled": "and a thread that somebody else's hint keeps in another layer",
    "real_time": "and a real-time thread that uses most of a CPU",
    "quota": "and a pod that uses more than its quota, which nobody enforces",
    "weight": "and a pod that gets less than its weight entitles it to",
    "unmatched": "and a hot thread that no group of its profile names",
    "antagonists": "and who has the CPU that a protected thread waits for",
    "cpuset": "and a pod that its cpuset confines to another tier's fence",
    "beside": "and a stranger on the sibling of a hot thread of an exclusive group",
    "explained": "the command line lists what stands, and explains it by its id",
    "calm": "all of it is gone once it is put right",
    "attached": "through all of that the engine stays attached",
}


@pytest.fixture(scope="module")
def linted(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    share = tmp_path_factory.mktemp("lint")
    machine = ("--virtual-time", "--cpus", str(CPUS), "--timeout", "10000")
    program = (sys.executable, LINT, "--seconds", str(HEALTHY_S))
    # every turn that the emulator gives to a CPU beyond these costs time and gains nothing here
    return walk_in_guest(share, machine, program, TEMPER_VM_FILL=str(CPUS))


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_linter_tells_what_goes_wrong_and_nothing_else(claim: str, linted: Walked):
    assert_held(claim, CLAIMS, linted)
