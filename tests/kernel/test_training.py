"""``temper train run`` under the engine: hints switch the arms, and the engine's record agrees.

The clock is virtual, so that the noise of the measurements is the guest's own.
"""

import sys
from pathlib import Path

import pytest

from tests.kernel.guest import Walked, assert_held, walk_in_guest

TRAINING = Path(__file__).parent / "training"
CLAIMS = {
    "journal": "the journal has every measurement that was taken, in order",
    "switched": "the two arms are switched ten times or more",
    "baseline": "with the tier alone the engine has all threads of the pod in the tier's layer",
    "profile": "with the profile it has the noisy ones in the Open layer, and the served ones not",
    "cpus": "the kernel ran the noisy ones on other CPUs with one arm than with the other",
    "one_engine": "no other engine was attached for them",
    "verdict": "the run ends with a better profile, its report and its evidence",
    "nothing_left": "afterwards no trial and no profile is in force, and all is in its layer again",
    "released": "the end of the agent releases the node",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    share = tmp_path_factory.mktemp("training")
    machine = ("--virtual-time", "--cpus", "4", "--timeout", "3600")
    return walk_in_guest(share, machine, (sys.executable, TRAINING), TEMPER_VM_FILL="8")


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_profile_is_trained_under_the_engine(claim: str, trained: Walked):
    assert_held(claim, CLAIMS, trained)
