"""Real programs under their profiles: where kernel and engine say that their threads are."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernel.guest import CHECKOUT, Walked, assert_held, walk_in_guest

PROFILES = Path(__file__).parent / "profiles"
SERVERS = CHECKOUT / "scripts/record-servers"
CLAIMS = {
    "enforcing": "the agent enforces, and threads follow hints",
    "chosen": "MySQL and PyTorch are recognised by their images",
    "connections": "the engine has every connection of MySQL in the exclusive layer",
    "innodb": "and InnoDB's own threads in the layer of the tier, which boosts them",
    "accepting": "and the main thread, which accepts connections",
    "neighbour": "another container of the pod stays in the tier's layer, whatever its names",
    "whole_cores": "the exclusive layer owns two whole cores",
    "at_home": "by the kernel's trace no connection ran anywhere else",
    "alone": "and nobody else ran there but threads of the kernel, and of the pod's own tier",
    "siblings_idle": "with a reading connection per core its other CPU idles 95 % of the time",
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
    mysql, tables = _told_by(SERVERS / "mysql-with-tables")
    [python] = _told_by(SERVERS / "python-with-pytorch")
    machine = ("--cpus", "14", "--memory", "4G", "--timeout", "2400")
    programs = ("--mysql", mysql, "--tables", tables, "--python", python)
    return walk_in_guest(share, machine, (sys.executable, PROFILES, *programs))


@pytest.mark.parametrize("claim", CLAIMS)
def test_real_programs_get_what_their_profiles_ask_for(claim: str, profiled: Walked):
    assert_held(claim, CLAIMS, profiled)


def _told_by(script: Path) -> list[str]:
    ended = subprocess.run([script], stdout=subprocess.PIPE, text=True, check=True)
    return ended.stdout.split()
