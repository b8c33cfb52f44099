"""Programs that begin late or below an init: how soon the agent's plan has their profile.

Time is the guest's own (``vm/run --virtual-time``): how soon is then no matter of the host.
"""

import shutil
import sys
from pathlib import Path

import pytest

from tests.kernel.guest import Walked, assert_held, walk_in_guest

RECOGNITION = Path(__file__).parent / "recognition"
CLAIMS = {
    "enforcing": "the agent enforces, and threads follow hints",
    "exec_4": "a program that a shell executes after 4 s is recognised within 2 s",
    "exec_30": "one after 30 s too",
    "exec_100": "and one after 100 s, which only the kernel's note of the exec makes known so soon",
    "mysqld_safe": "the server below mysqld_safe is recognised within 2 s",
    "shell": "and the child of a shell",
}
INITS = ("tini", "dumb-init", "catatonit")


@pytest.fixture(scope="module")
def recognised(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    share = tmp_path_factory.mktemp("recognition")
    machine = ("--virtual-time", "--cpus", "4", "--timeout", "3600")
    return walk_in_guest(share, machine, (sys.executable, RECOGNITION))


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_program_is_recognised_soon_after_it_begins(claim: str, recognised: Walked):
    assert_held(claim, CLAIMS, recognised)


@pytest.mark.parametrize("init", INITS)
def test_a_program_below_a_real_init_is_recognised_soon(init: str, recognised: Walked):
    if shutil.which(init) is None:
        pytest.skip(f"{init} is not installed on this machine, whose files the guest has")
    assert_held(init, {init: f"the program below {init} is recognised within 2 s"}, recognised)
