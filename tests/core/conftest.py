"""Cgroups of a test's own, in the real hierarchy."""

import os
import time
from contextlib import suppress

import pytest

from temper_core.node.cgroups import detect_cgroups
from tests.patience import PATIENCE_S


@pytest.fixture(scope="session")
def unified():
    """The root of the cgroup v2 hierarchy, where it can be written to."""
    root = detect_cgroups().unified
    if root is None or not os.access(root, os.W_OK):
        pytest.skip("no cgroup v2 hierarchy that this user may change")
    return root


@pytest.fixture
def make_cgroup(unified):
    """Make cgroups below one of the test's own; in the end they go, and all that lives in them."""
    top = unified / f"temper-test-{os.getpid()}"

    def make(name=""):
        folder = top / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    make()
    yield make
    (top / "cgroup.kill").write_text("1")
    for folder in sorted([top, *top.rglob("*/")], reverse=True):
        _remove(folder)


def _remove(folder):
    deadline = time.monotonic() + PATIENCE_S
    while folder.exists():
        with suppress(OSError):
            folder.rmdir()
            return
        assert time.monotonic() < deadline, f"{folder} is still in use"
        time.sleep(0.01)
