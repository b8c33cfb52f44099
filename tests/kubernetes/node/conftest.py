"""Boots one guest per cgroup driver and installs the chart there; without ``--node`` all skip."""

import subprocess
from pathlib import Path

import pytest

from tests.kubernetes.node.real_node import NAMESPACE, ROOT, RealNode
from tests.kubernetes.node.workloads import PROFILE, PROFILE_FILE, workloads

BUILD_IMAGE = ROOT / "deploy/image/build"


def pytest_addoption(parser):
    parser.addoption(
        "--node",
        action="store_true",
        help="boot a real node; whatever keeps it from booting is then a failure",
    )
    parser.addoption("--driver", action="append", help="only this cgroup driver; may be repeated")


def pytest_generate_tests(metafunc):
    if "booted" in metafunc.fixturenames:
        drivers = metafunc.config.getoption("--driver", default=None) or ["cgroupfs", "systemd"]
        metafunc.parametrize("booted", drivers, indirect=True, scope="session")


def pytest_collection_modifyitems(config, items):
    # The option is known only where tests/kubernetes/node itself is named on the command line.
    if config.getoption("--node", default=False):
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="boots a real node: make e2e-node"))


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    """The image of this checkout, as an OCI archive, and its reference."""
    archive = tmp_path_factory.mktemp("image") / "temper.tar"
    built = subprocess.run([BUILD_IMAGE, archive], stdout=subprocess.PIPE, text=True, check=True)
    return archive, built.stdout.strip()


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
    installed.kubectl("wait", "--for=condition=Ready", "pod", *names, "--timeout=180s", timeout=200)
    return {each.name: each for each in started}
