"""Builds all distributions once; without ``--install`` the tests here skip."""

from pathlib import Path

import pytest

from tests.heavy import leave_to
from tests.install.interpreters import python_of
from tests.install.report import Report
from tests.install.tools import ROOT, run

HERE = Path(__file__).parent


def pytest_addoption(parser):
    parser.addoption(
        "--install",
        action="store_true",
        help="install the built wheels by pip, pipx and uv, with the ends of all version ranges",
    )


def pytest_collection_modifyitems(config, items):
    # The option is known only where tests/install itself is named on the command line.
    if config.getoption("--install", default=False):
        return
    for item in items:
        if HERE in item.path.parents:
            leave_to("test-install", item, "makes an environment for each case")


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """Return the folder that ``make dist`` fills."""
    folder = tmp_path_factory.mktemp("dist")
    run(ROOT / "scripts" / "build-dist", folder)
    return folder


@pytest.fixture
def python(request):
    """Return the interpreter of the parameter, a version such as 3.11."""
    path = python_of(request.param)
    if path is None:
        pytest.skip(f"this machine has no Python {request.param}")
    return path


@pytest.fixture
def report(request):
    """Return where a case writes what it found; a case that fails is written without a figure."""
    told = Report(request.node.originalname, request.node.callspec.id)
    yield told
    told.write()
