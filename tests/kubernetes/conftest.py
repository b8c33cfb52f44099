import select
from pathlib import Path

import pytest
from attrs import evolve

from temper_core import MachineShape, PodSourceContext
from temper_core.settings.models import PodSettings
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.options import Options
from temper_plugin_kubernetes.pods import KubernetesPods
from tests.control_plane.cluster import access_by, wait_until
from tests.control_plane.severable import Severable
from tests.core.node.trees import make_hierarchy


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
