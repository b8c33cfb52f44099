"""The control plane that tests share; without ``--kube`` those that need one are skipped."""

from contextlib import contextmanager

import pytest

from tests.control_plane.cluster import RBAC, Cluster, unique
from tests.heavy import TESTS, leave_to

FOLDERS = frozenset(TESTS / name for name in ("density", "kubernetes"))
BUILT = {"cluster", "plane", "prometheus", "helm"}
"""Fixtures that need what takes long to build or to start."""


def pytest_addoption(parser):
    parser.addoption(
        "--kube",
        action="store_true",
        help="start a control plane; whatever keeps it from starting is then a failure",
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("--kube"):
        return
    for item in items:
        # Fixtures of these names elsewhere are others: only these folders' tests are meant.
        is_here = not FOLDERS.isdisjoint(item.path.parents)
        if is_here and not BUILT.isdisjoint(getattr(item, "fixturenames", ())):
            leave_to("test-kube", item, "needs a built control plane")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A control plane with RBAC, and the agent's service account with the rights it needs."""
    cluster = Cluster(tmp_path_factory.mktemp("kube"))
    try:
        for name in ("temper", "shop"):
            cluster.make({"kind": "Namespace", "metadata": {"name": name}})
        for document in RBAC:
            cluster.make(document)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def node(cluster):
    """The name of a node of the cluster."""
    with _node(cluster) as name:
        yield name


@pytest.fixture
def other_node(cluster):
    """The name of one more node."""
    with _node(cluster) as name:
        yield name


@contextmanager
def _node(cluster):
    name = unique("node")
    cluster.node(name)
    yield name
    cluster.without_node(name)
