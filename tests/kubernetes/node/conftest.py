"""Boots one guest per cgroup driver and installs the chart there; without ``--node`` all skip."""

import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.heavy import leave_to
from tests.kubernetes.node.real_node import DRIVERS, NAMESPACE, ROOT, RealNode, tell
from tests.kubernetes.node.workloads import PROFILE, PROFILE_FILE, workloads

BUILD_IMAGE = ROOT / "deploy/image/build"


def pytest_addoption(parser):
    parser.addoption(
        "--node",
        action="store_true",
        help="boot a real node; whatever keeps it from booting is then a failure",
    )
    parser.addoption("--driver", action="append", help="only this cgroup driver; may be repeated")
    parser.addoption("--archive", type=Path, help="this image instead of one of the checkout")


def pytest_generate_tests(metafunc):
    if "booted" in metafunc.fixturenames:
        drivers = metafunc.config.getoption("--driver", default=None) or DRIVERS
        metafunc.parametrize("booted", drivers, indirect=True, scope="session")


def pytest_collection_modifyitems(config, items):
    # The option is known only where tests/kubernetes/node itself is named on the command line.
    if config.getoption("--node", default=False):
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            leave_to("e2e-node", item, "boots a real node")


@pytest.fixture(scope="session")
def image(request, tmp_path_factory):
    """The image of this checkout, as an OCI archive, and its reference."""
    archive = request.config.getoption("--archive")
    if not archive:
        archive = tmp_path_factory.mktemp("image") / "temper.tar"
        subprocess.run([BUILD_IMAGE, archive], stdout=subprocess.PIPE, check=True)
    with tarfile.open(archive) as tar:
        index = json.load(tar.extractfile("./index.json"))
    return archive, index["manifests"][0]["annotations"]["io.containerd.image.name"]


@pytest.fixture(scope="session")
def booted(request, tmp_path_factory, image):
    """A node that is Ready, with nothing installed on it."""
    directory = tmp_path_factory.mktemp(request.param)
    node = RealNode(directory, request.param, *image)
    try:
        yield node
    finally:
        node.down()


@pytest.fixture(scope="session")
def installed(booted):
    """The node with the release on it."""
    booted.install({PROFILE_FILE: PROFILE})
    return booted


@pytest.fixture
def node(installed):
    """The node as its agent enforces."""
    try:
        installed.enforcing()
    except AssertionError:
        log = installed.kubectl("logs", "-n", NAMESPACE, "daemonset/temper-agent", "--tail=40")
        pytest.fail(f"it does not enforce: {installed.told()}\n{log}")
    return installed


@pytest.fixture(scope="session")
def placed(installed, image):
    """Pods of every class, all running."""
    started = workloads(image[1])
    installed.apply(*(each.document() for each in started))
    names = [each.name for each in started]
    installed.kubectl("wait", "--for=condition=Ready", "pod", *names, "--timeout=600s", timeout=620)
    return {each.name: each for each in started}


def pytest_terminal_summary(terminalreporter, config):
    """Keep which tests passed on which node, for docs/kubernetes-node.md."""
    if not config.getoption("--node", default=False):
        return
    outcomes = {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, ()):
            driver = next((each for each in DRIVERS if f"[{each}" in report.nodeid), None)
            if driver and (outcome != "passed" or report.when == "call"):
                outcomes.setdefault(driver, []).append(outcome == "passed")
    for driver, passed in outcomes.items():
        tell(driver, "tests that passed", f"{sum(passed)} of {len(passed)}")
