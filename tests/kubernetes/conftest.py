import select
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve

from temper_core import MachineShape, PodSourceContext
from temper_core.settings.models import PodSettings
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.options import Options
from temper_plugin_kubernetes.pods import KubernetesPods
from tests.core.node.trees import make_hierarchy
from tests.heavy import leave_to
from tests.kubernetes.cluster import (
    RBAC,
    Cluster,
    access_by,
    unique,
    wait_until,
)
from tests.kubernetes.severable import Severable

HERE = Path(__file__).parent
BUILT = {"cluster", "plane", "prometheus", "helm"}
"""Fixtures that need what takes long to build or to start."""


def pytest_addoption(parser):
    parser.addoption(
        "--kube",
        action="store_true",
        help="start a control plane; whatever keeps it from starting is then a failure",
    )


def pytest_collection_modifyitems(config, items):
    # The option is known only where tests/kubernetes itself is named on the command line.
    if config.getoption("--kube", default=False):
        return
    for item in items:
        # Fixtures of these names elsewhere are others: only this folder's tests are meant.
        is_here = HERE in item.path.parents
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
def token_file(cluster, tmp_path):
    path = tmp_path / "token"
    path.write_text(cluster.token())
    return path


@pytest.fixture
def way(cluster):
    """A way to the API server that can be cut."""
    host, _, port = cluster.url.removeprefix("https://").partition(":")
    way = Severable(host, int(port))
    yield way
    way.close()


@pytest.fixture
def access(cluster, token_file, way):
    """The API server in the name of the agent's service account, by the way that can be cut."""
    return evolve(access_by(cluster.url, token_file, cluster.ca), port=way.port)


@pytest.fixture
def node(cluster):
    """The name of a node of the cluster."""
    with a_node(cluster) as name:
        yield name


@pytest.fixture
def other_node(cluster):
    """The name of one more node."""
    with a_node(cluster) as name:
        yield name


@contextmanager
def a_node(cluster):
    name = unique("node")
    cluster.node(name)
    yield name
    cluster.without_node(name)


class Host:
    """A made-up host: its cgroups, and the context that a source of its pods is given."""

    def __init__(self, directory):
        self.directory = directory
        (directory / "proc").mkdir()
        self.cgroups = make_hierarchy(directory / "cgroup", ["kubepods.slice"])

    def context(self, node):
        return PodSourceContext(
            PodSettings(source="kubernetes"),
            (),
            MachineShape.uniform(4),
            str(self.directory / "proc"),
            str(self.cgroups),
            node,
        )


@pytest.fixture
def made_host(tmp_path):
    return Host(tmp_path)


class Watched:
    """A pod source at work, and what it says."""

    def __init__(self, source):
        self.source = source

    def pods(self):
        return {pod.key: pod for pod in self.source.pods()}

    def names(self):
        return {pod.name for pod in self.source.pods()}

    def hears(self, seconds=10.0):
        """Whether the descriptor becomes readable within so many seconds."""
        return bool(select.select([self.source.fileno()], [], [], seconds)[0])

    def until(self, condition, what, seconds=20.0):
        return wait_until(lambda: condition(self.source.pods()), what, seconds)


@pytest.fixture
def account():
    return Account()


@pytest.fixture
def watch(made_host, account):
    """Open the source for a node; every one is closed in the end."""
    opened = []

    def open_source(access, node, **options):
        given = evolve(Options(node=node), **options)
        opened.append(KubernetesPods(made_host.context(node), access, given, account))
        return Watched(opened[-1])

    yield open_source
    descriptors = {source.fileno() for source in opened}
    for source in opened:
        source.close()
    assert not any(Path(f"/proc/self/fd/{each}").exists() for each in descriptors - {-1})
