"""``kubectl temper trace-compare`` with real agents of two hosts. Only kubectl is a fake."""

import json

import pytest

from tests.own_host import OwnHost
from tests.patience import PATIENCE_S
from tests.tracer.capture.test_kubectl_trace import Cluster, pod

pytestmark = pytest.mark.usefixtures("bpf")
WORDS = ("--seconds", "0.5", "--output", "json")


@pytest.fixture
def cluster(tmp_path, host, settings):
    """A cluster of one node, whose agent is the host's."""
    return Cluster(tmp_path / "cluster", host.command(), ["--settings", str(settings)])


@pytest.fixture
def canary(cluster, tmp_path):
    """Another node with an agent, on which a pod runs."""
    folder = tmp_path / "canary"
    folder.mkdir()
    own = OwnHost(folder)
    path = own.settings("agent")
    process = own.start(path)
    entered = {"enter": own.command(), "options": ["--settings", str(path)]}
    (cluster.folder / "agent-b.json").write_text(json.dumps(entered))
    cluster.put("pods.node-b", {"items": [pod("agent-b", "temper", "node-b")]})
    cluster.put("pod.web-canary", pod("web-canary", "shop", "node-b"))
    yield own
    process.terminate()
    process.wait(timeout=PATIENCE_S)
    own.close()


@pytest.mark.usefixtures("canary")
def test_pods_of_two_nodes_are_captured_and_compared(cluster):
    told = cluster.temper("trace-compare", "shop/web", "shop/web-canary", *WORDS)

    assert told.returncode == 0, told.stderr
    document = json.loads(told.stdout)
    assert document["by"] == "process"
    assert document["changes"]
    paths = sorted(path.name for path in cluster.folder.glob("*.pftrace"))
    assert paths == ["1-web.pftrace", "2-web-canary.pftrace"]
    agents = [words[1] for words in cluster.log() if "capture" in words]
    assert sorted(agents) == ["agent-b", "temper-agent-x"]


def test_one_pod_is_captured_twice_and_compared(cluster):
    told = cluster.temper("trace-compare", "shop/web", "shop/web", "--seconds", "0.5")

    assert told.returncode == 0, told.stderr
    assert "before and after, by process" in told.stdout
    assert len([words for words in cluster.log() if "capture" in words]) == 2


def test_a_pod_that_does_not_exist_is_one_line(cluster):
    told = cluster.temper("trace-compare", "shop/web", "shop/none", *WORDS)

    assert told.returncode == 2
    assert 'pods "none" not found' in told.stderr
    assert not list(cluster.folder.glob("*.pftrace"))
