"""While scx_layered schedules: every number of every tier, and plans that are loaded on trial."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernel.guest import BUILD_ENGINE, CHECKOUT, DEMO, VM_RUN, Walked, read_outcomes

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
    engine = subprocess.run([BUILD_ENGINE], stdout=subprocess.PIPE, text=True, check=True)
    python = ["env", f"PYTHONPATH={CHECKOUT}:{DEMO}", sys.executable]
    ended = subprocess.run(
        [
            *(VM_RUN, "--cpus", "4", "--timeout", str(GUEST_S), "--share", share, "--"),
            *(*python, AGREEMENT, "--engine", engine.stdout.strip()),
            *("--report", "/share/report.jsonl"),
        ],
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return Walked(ended.returncode, ended.stdout, read_outcomes(share / "report.jsonl"))


@pytest.mark.parametrize("claim", CLAIMS)
def test_while_the_engine_schedules(claim: str, agreed: Walked):
    outcome = agreed.outcomes.get(claim)

    assert outcome is not None, f"it did not come to: {CLAIMS[claim]}\n{agreed.output}"
    assert outcome.holds, f"not so: {CLAIMS[claim]}\n{outcome.measured}\n\n{agreed.output}"
