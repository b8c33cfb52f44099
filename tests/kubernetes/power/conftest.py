"""The kinds of the plugin power in the cluster, and an operator that writes them."""

import json
import os
import subprocess

import pytest
from attrs import evolve

from temper_plugin_power.controller.operator import Operator
from temper_plugin_power.resources.definitions import definitions
from temper_plugin_power.settings.classifier import ClassifierSettings
from temper_plugin_power.settings.operator import OperatorSettings
from temper_plugin_power.settings.power import PowerSettings
from tests.control_plane.cluster import ROOT, access_by, pod, unique, wait_until

RIGHTS = ROOT / "plugins/power/operator-rbac.yaml"
GROUP = "/apis/joulie.io/v1alpha1"
SETTINGS = PowerSettings(
    node_selector="joulie.io/managed=true",
    classifier=ClassifierSettings(prometheus_url="", interval="1s"),
    operator=OperatorSettings(interval="1s"),
)


@pytest.fixture(scope="package")
def kubectl(cluster):
    def run(*arguments, given=None):
        done = subprocess.run(
            ["kubectl", "-n", "shop", *arguments],
            env={**os.environ, **cluster.environment},
            check=False,
            capture_output=True,
            text=True,
            input=given,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="package", autouse=True)
def _kinds(cluster, kubectl):
    """Add the kinds to the cluster for these tests."""
    cluster.make({"kind": "Namespace", "metadata": {"name": "shop"}})
    applied = json.dumps(definitions())
    kubectl("apply", "-f", "-", given=applied)
    kubectl("apply", "-n", "temper", "-f", str(RIGHTS))
    kubectl("wait", "--for=condition=established", "--timeout=60s", "-f", "-", given=applied)
    yield
    kubectl("delete", "--wait=false", "-f", "-", given=applied)


class Yard:
    """A namespace of its own, a managed node, and the operators that run in this test."""

    def __init__(self, cluster, access):
        self.cluster = cluster
        self.access = access
        self.namespace = unique("power")
        self.node = unique("node")
        self.running = []
        cluster.make({"kind": "Namespace", "metadata": {"name": self.namespace}})
        self.add_node(self.node)

    def add_node(self, name, **labels):
        self.cluster.node(name)
        kept = {"joulie.io/managed": "true", **labels}
        self.cluster.patch(
            {"kind": "Node", "metadata": {"name": name}}, {"metadata": {"labels": kept}}
        )

    def operator(self, settings=SETTINGS, access=None):
        """Start an operator that holds its Lease in the namespace of this test."""
        given = evolve(access or self.access, namespace="temper")
        made = Operator(settings, given)
        self.running.append(made)
        made.start()
        return made

    def leads(self, operator):
        return wait_until(lambda: operator.may_write, "the operator leads and knows the cluster")

    def run(self, name, node=None, **metadata):
        """Make a running pod of its own."""
        made = pod(name, node or self.node, self.namespace, cpu="1", limit="2", **metadata)
        return self.cluster.run(made)

    def profile(self, name):
        path = f"{GROUP}/namespaces/{self.namespace}/workloadprofiles/{name}"
        answer = self.cluster.client.get(path)
        return answer.json() if answer.status_code == 200 else None

    def classified(self, name):
        """Wait for a profile with a status."""

        def found():
            profile = self.profile(name)
            return profile if profile and profile.get("status") else None

        return wait_until(found, f"a profile {name}")

    def patch_profile(self, name, change, subresource=""):
        path = f"{GROUP}/namespaces/{self.namespace}/workloadprofiles/{name}{subresource}"
        headers = {"Content-Type": "application/merge-patch+json"}
        return self.cluster.client.patch(path, json=change, headers=headers)

    def close(self):
        for operator in self.running:
            operator.close()
        self.cluster.without_node(self.node)
        for twin in self.cluster.call("GET", f"{GROUP}/nodetwins")["items"]:
            self.cluster.client.delete(f"{GROUP}/nodetwins/{twin['metadata']['name']}")


@pytest.fixture
def yard(cluster, tmp_path):
    """A namespace and a node, and operators with the rights of their own account only."""
    token_file = tmp_path / "token"
    token_file.write_text(cluster.token("temper-power-operator"))
    made = Yard(cluster, access_by(cluster.url, token_file, cluster.ca))
    yield made
    made.close()


@pytest.fixture(scope="module", autouse=True)
def _nodes_go_with_their_tests(cluster):
    """Later tests of the session count the nodes of the cluster."""
    before = _names_of_nodes(cluster)
    yield
    for name in _names_of_nodes(cluster) - before:
        cluster.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


def _names_of_nodes(cluster):
    nodes = cluster.client.get("/api/v1/nodes").json()["items"]
    return {node["metadata"]["name"] for node in nodes}
