"""``temper train run`` under the engine: hints switch the arms, and the engine's record agrees.

The clock is virtual, so that the noise of the measurements is the guest's own.
"""

import subprocess
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


@pytest.fixture(scope="module", params=["processes", "threads"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Walked:
    share = tmp_path_factory.mktemp("training")
    machine = ("--virtual-time", "--cpus", "4", "--timeout", "3600")
    program = (sys.executable, TRAINING)
    if request.param == "threads":
        compile_pool(share / "pool")
        program = (*program, "--pool", "/share/pool")
    return walk_in_guest(share, machine, program, TEMPER_VM_FILL="8")


def compile_pool(program: Path) -> None:
    """Compile the program whose noise comes from threads of its own."""
    source = TRAINING / "pool.c"
    command = ["cc", "-O1", "-Wall", "-Werror", "-pthread", "-o", program, source]
    subprocess.run(command, check=True)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_profile_is_trained_under_the_engine(claim: str, trained: Walked):
    assert_held(claim, CLAIMS, trained)
