"""The chart's DaemonSets in the hands of the real controllers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.control_plane.cluster import unique, wait_until
from tests.kubernetes.chart.releases import NAMESPACE

TEMPER = str(Path(sys.executable).with_name("temper"))
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app.kubernetes.io/component=agent"
CANARY = tuple(
    part
    for value in (
        "restoreOnUninstall=false",
        "agent.canary.enabled=true",
        "agent.canary.image.tag=9.9.9",
        "agent.canary.nodeSelector.temper-canary=true",
    )
    for part in ("--set", value)
)


@pytest.fixture
def controllers(plane, tmp_path):
    """What makes pods of DaemonSets, and what removes them with their owners."""
    # Its log goes where the test's own files are.
    with (tmp_path / "controllers.log").open("w") as log:
        process = subprocess.Popen(
            [
                "kube-controller-manager",
                f"--kubeconfig={plane.directory / 'kubeconfig'}",
                "--controllers=daemonset-controller,garbage-collector-controller",
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                "--secure-port=0",
            ],
            stdout=log,
            stderr=log,
            env=plane.environment,
        )
        yield
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture
def nodes(plane):
    """A node of the canary, and one that is not."""
    names = {"canary": unique("canary"), "main": unique("main")}
    for name in names.values():
        plane.node(name)
    labels = {"metadata": {"labels": {"temper-canary": "true"}}}
    plane.patch({"kind": "Node", "metadata": {"name": names["canary"]}}, labels)
    for name in names.values():
        linux = {"metadata": {"labels": {"kubernetes.io/os": "linux"}}}
        plane.patch({"kind": "Node", "metadata": {"name": name}}, linux)
    yield names
    for name in names.values():
        plane.without_node(name)


@pytest.mark.usefixtures("controllers")
def test_every_node_gets_its_agent_a_profile_rolls_them_and_they_go_with_the_release(
    plane, nodes, release, tmp_path
):
    profile = tmp_path / "my-service.toml"
    profile.write_text("id = 'my-service'")
    edited = ("--set-file", f"agent.profiles.my-service\\.toml={profile}")

    release.installed(*CANARY)
    wait_until(lambda: len(_agents(plane)) == 2, "both nodes have an agent", 60)
    first = _agents(plane)
    assert {node: pod["image"] for node, pod in first.items()} == {
        nodes["main"]: "registry.temper.codes/temper:0.1.0",
        nodes["canary"]: "registry.temper.codes/temper:9.9.9",
    }

    release.upgraded(*CANARY, *edited)
    wait_until(lambda: _have_all_rolled(plane, first), "both agents are of the new profile", 60)

    release.uninstalled()
    wait_until(lambda: not _agents(plane), "the agents went with the release", 60)


@pytest.mark.usefixtures("controllers")
def test_an_agent_that_no_scheduler_has_placed_is_known_by_the_node_it_is_meant_for(
    plane, nodes, release
):
    release.installed("--set", "restoreOnUninstall=false")
    wait_until(lambda: len(_agents(plane)) == 2, "both nodes have an agent", 60)
    asked = ["status", "--kubeconfig", plane.directory / "kubeconfig", "--output", "json"]

    done = subprocess.run([TEMPER, "k8s", *asked], capture_output=True, text=True, check=False)

    told = {each["name"]: each for each in json.loads(done.stdout)["nodes"]}
    for name in nodes.values():
        assert (told[name]["standing"], told[name]["agent"]["state"]) == ("silent", "Pending")
    assert done.returncode == 1
    release.uninstalled()
    wait_until(lambda: not _agents(plane), "the agents went with the release", 60)


def _agents(plane):
    """Return what matters of each agent's pod, by the node that it is meant for."""
    return {
        _node_of(item): {
            "image": item["spec"]["containers"][0]["image"],
            "sum": item["metadata"]["annotations"]["checksum/profiles"],
        }
        for item in plane.call("GET", PODS)["items"]
    }


def _node_of(item):
    affinity = item["spec"]["affinity"]["nodeAffinity"]
    required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    (field,) = required["nodeSelectorTerms"][0]["matchFields"]
    return field["values"][0]


def _have_all_rolled(plane, first):
    now = _agents(plane)
    return now.keys() == first.keys() and all(
        now[node]["sum"] != first[node]["sum"] for node in first
    )
