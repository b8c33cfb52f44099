"""What tests of the scheduler may need of the machine they run on."""

import os
import subprocess

import pytest


def _can_unshare() -> bool:
    tried = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True)
    return tried.returncode == 0


can_gate = pytest.mark.skipif(
    os.geteuid() != 0 or not _can_unshare(),
    reason="a mount namespace of one's own needs CAP_SYS_ADMIN",
)
"""For tests in which an engine is held back at a gate."""
