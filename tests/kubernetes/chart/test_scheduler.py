"""A real kube-scheduler with the configuration and the rights that the chart gives it."""

import subprocess

import pytest
import yaml

from tests.control_plane.cluster import pod, unique, wait_until
from tests.kubernetes.chart.releases import NAMESPACE

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/temper-scheduler"
CONFIGURATION = f"/api/v1/namespaces/{NAMESPACE}/configmaps/temper-scheduler"


@pytest.fixture
def scheduler(plane, release, tmp_path):
    """The log of a scheduler that runs as the chart would run it, by its own account."""
    release.installed("--set", "scheduler.enabled=true,restoreOnUninstall=false")
    configuration = yaml.safe_load(plane.call("GET", CONFIGURATION)["data"]["scheduler.yaml"])
    kubeconfig = yaml.safe_load((plane.directory / "kubeconfig").read_text())
    kubeconfig["users"][0]["user"] = {"token": plane.token("temper-scheduler", NAMESPACE)}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    configuration["clientConnection"] = {"kubeconfig": str(tmp_path / "kubeconfig")}
    (tmp_path / "scheduler.yaml").write_text(yaml.safe_dump(configuration))
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            _command(tmp_path), stdout=log, stderr=log, env=plane.environment
        )
        yield tmp_path / "log"
        process.terminate()
        process.wait(timeout=20)


def _command(directory):
    own = ("--authentication-kubeconfig", "--authorization-kubeconfig")
    return [
        "kube-scheduler",
        f"--config={directory / 'scheduler.yaml'}",
        "--bind-address=127.0.0.1",
        "--secure-port=0",
        *(f"{option}={directory / 'kubeconfig'}" for option in own),
    ]


def test_it_leads_by_the_charts_lease_and_places_pods_although_nobody_scores(plane, scheduler):
    node = unique("node")
    plane.node(node)
    asked = pod(unique("a"), None, cpu="100m")
    asked["spec"]["schedulerName"] = "temper-scheduler"
    del asked["spec"]["nodeName"]
    made = plane.make(asked)
    path = f"/api/v1/namespaces/default/pods/{made['metadata']['name']}"

    wait_until(lambda: plane.call("GET", path)["spec"].get("nodeName") == node, "it is bound", 60)

    assert plane.call("GET", LEASE)["spec"]["holderIdentity"]
    assert "forbidden" not in scheduler.read_text().lower()
    plane.without_node(node)
