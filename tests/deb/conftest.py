"""Builds the Debian package once, and a root to install it into; without ``--deb`` they skip."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.heavy import leave_to

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD_SECONDS = 1200


def pytest_addoption(parser):
    parser.addoption(
        "--deb",
        action="store_true",
        help="build the package; whatever keeps it from being built is then a failure",
    )


def pytest_collection_modifyitems(config, items):
    # The option is known only where tests/deb itself is named on the command line.
    if config.getoption("--deb", default=False):
        return
    for item in items:
        if HERE in item.path.parents:
            leave_to("test-deb", item, "builds a Debian package")


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    target = tmp_path_factory.mktemp("deb")
    command = [ROOT / "scripts" / "build-deb", target]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=BUILD_SECONDS
    )
    assert done.returncode == 0, done.stderr
    [package] = target.glob("*.deb")
    return package


@pytest.fixture(scope="session")
def host(package, tmp_path_factory):
    """Return a function that runs a shell in a root that is this host's, with changes of its own.

    The package is in it as /tmp/temper.deb. Nothing is written to this host.
    """
    layers = tmp_path_factory.mktemp("host")
    script = HERE / "in_own_root"

    def run(commands, check=True):
        done = subprocess.run(
            [script, layers, package, commands],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        )
        assert not check or done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        return done

    yield run
    subprocess.run(["rm", "-rf", layers], check=True)
