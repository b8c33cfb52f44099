"""While scx_layered schedules: every number of every tier, and plans that are loaded on trial."""

from pathlib import Path

import pytest

from tests.kernel.guest import PYTHON, Walked, assert_held, walk_in_guest

AGREEMENT = Path(__file__).parent / "agreement"
GUEST_S = 3_600
CLAIMS = {
    "loads": "engine check --load has a plan of temper's loaded into this kernel",
    "refused": "one that breaks the engine's own rules is refused in its words",
    "too_large": "one that the kernel's verifier refuses is refused as that",
    "nothing_left": "nothing was attached, and nothing of it stays",
    "beside": "beside an engine that schedules a plan is loaded, and that engine is not touched",
    "bpf": "every number of the bpf tier is what /proc and the cgroups' files say",
    "sums": "so it is where few threads are told one by one",
    "bpf_iter": "so is every number of the bpf-iter tier",
    "proc": "and every number of the proc tier",
    "attached": "through all of that the engine stays attached",
}


@pytest.fixture(scope="module")
def agreed(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    share = tmp_path_factory.mktemp("agreement")
    machine = ("--cpus", "4", "--timeout", str(GUEST_S))
    return walk_in_guest(share, machine, (*PYTHON, AGREEMENT))


@pytest.mark.parametrize("claim", CLAIMS)
def test_while_the_engine_schedules(claim: str, agreed: Walked):
    assert_held(claim, CLAIMS, agreed)
