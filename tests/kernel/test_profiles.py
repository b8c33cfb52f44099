"""Real programs under their profiles: where kernel and engine say that their threads are."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernel.guest import BUILD_ENGINE, CHECKOUT, VM_RUN, Walked, read_outcomes

PROFILES = Path(__file__).parent / "profiles"
SERVERS = CHECKOUT / "scripts/record-servers"
CLAIMS = {
    "enforcing": "the agent enforces, and threads follow hints",
    "chosen": "MySQL and PyTorch are recognised by their images",
    "connections": "the engine has every connection of MySQL in the exclusive layer",
    "innodb": "and InnoDB's own threads in the layer of the tier, which boosts them",
    "rest": "and all its others in the one that yields",
    "neighbour": "another container of the pod stays in the tier's layer, whatever its names",
    "whole_cores": "the exclusive layer owns two whole cores",
    "at_home": "by the kernel's trace no connection ran anywhere else",
    "alone": "and nobody else ran there but threads of the kernel, and of the pod's own tier",
    "siblings_idle": "and while a connection ran, the other CPU of its core idled most of the time",
    "training": "a training's loader workers are in their layer, its main threads in the tier's",
    "told": "profiles that cannot be loaded are told",
    "untouched": "and nothing else changes by them: no engine, no layer, no hint",
    "edited": "a change of a shipped profile moves threads",
    "kept": "of a spoilt change the last good version stays",
    "taken_back": "without the change the shipped profile is in force again",
    "by_hints": "all of that takes hints alone",
    "attached": "through all of that the engine stays attached",
}


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    share = tmp_path_factory.mktemp("profiles")
    [engine] = _told_by(BUILD_ENGINE)
    mysql, tables = _told_by(SERVERS / "mysql-with-tables")
    [python] = _told_by(SERVERS / "python-with-pytorch")
    ended = subprocess.run(
        [
            *(VM_RUN, "--cpus", "14", "--memory", "4G", "--timeout", "2400", "--share", share),
            *("--", sys.executable, PROFILES, "--engine", engine, "--mysql", mysql),
            *("--tables", tables, "--python", python, "--report", "/share/report.jsonl"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return Walked(ended.returncode, ended.stdout, read_outcomes(share / "report.jsonl"))


@pytest.mark.parametrize("claim", CLAIMS)
def test_real_programs_get_what_their_profiles_ask_for(claim: str, profiled: Walked):
    outcome = profiled.outcomes.get(claim)

    assert outcome is not None, f"it did not come to: {CLAIMS[claim]}\n{profiled.output}"
    assert outcome.holds, f"not so: {CLAIMS[claim]}\n{outcome.measured}\n\n{profiled.output}"


def _told_by(script: Path) -> list[str]:
    ended = subprocess.run([script], stdout=subprocess.PIPE, text=True, check=True)
    return ended.stdout.split()
