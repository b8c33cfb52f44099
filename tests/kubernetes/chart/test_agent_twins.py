"""What the chart lets the agents write of NodeTwins: controlStatus, of their own node."""

import pytest

from tests.control_plane.cluster import PATCHES, unique, wait_until
from tests.kubernetes.chart.releases import NAMESPACE

TWINS = "/apis/joulie.io/v1alpha1/nodetwins"
ON = "power.enabled=true,power.crds.keep=false,restoreOnUninstall=false,agent.powerTwin=true"
APPLIED = {"controlStatus": {"cpu": {"backend": "rapl", "result": "applied", "message": "x" * 256}}}
SAID = {"schedulableClass": "eco", "lastUpdated": "2026-11-28T00:00:00Z"}
REFUSED = {
    "a field of the operator": {"schedulableClass": "performance"},
    "a field of the operator beside": {**APPLIED, "estimatedPUE": 2},
    "a field of the operator is removed": {"lastUpdated": None},
    "a long message": {"controlStatus": {"gpu": {"message": "x" * 257}}},
}


class Twins:
    """Two nodes with NodeTwins, and the agent of the first."""

    def __init__(self, plane):
        self.plane = plane
        self.names = [unique("node"), unique("node")]
        for name in self.names:
            plane.node(name)
            spec = {"nodeName": name, "profile": "eco"}
            kind = {"apiVersion": "joulie.io/v1alpha1", "kind": "NodeTwin"}
            plane.call("POST", TWINS, {**kind, "metadata": {"name": name}, "spec": spec})
            plane.call("PATCH", f"{TWINS}/{name}/status", {"status": SAID}, **PATCHES)

    def patch(self, name, status, *, bound=True):
        """Patch a status with the token of an agent on the first node, as dry run."""
        headers = {"Authorization": f"Bearer {self.token(bound=bound)}", **PATCHES}
        path = f"{TWINS}/{name}/status"
        body = {"status": status}
        return self.plane.client.patch(path, json=body, headers=headers, params={"dryRun": "All"})

    def token(self, *, bound):
        node = self.plane.get("Node", self.names[0])
        uid = node["metadata"]["uid"]
        reference = {"kind": "Node", "apiVersion": "v1", "name": self.names[0], "uid": uid}
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/temper-agent/token"
        spec = {"boundObjectRef": reference} if bound else {}
        return self.plane.call("POST", path, {"spec": spec})["status"]["token"]

    def is_refused(self, name, status, **options):
        answer = self.patch(name, status, **options)
        return answer.status_code == 422 and "Temper's agents" in answer.json()["message"]


@pytest.fixture
def twins(plane, release):
    release.installed("--set", ON)
    wait_until(lambda: plane.client.get(TWINS).status_code == 200, "the kinds are served", 30)
    made = Twins(plane)
    yield made
    for name in made.names:
        plane.call("DELETE", f"{TWINS}/{name}")
        plane.without_node(name)


def test_agents_write_the_control_status_of_their_own_node_and_nothing_else(twins):
    own, other = twins.names
    wrong = REFUSED["a field of the operator"]
    wait_until(lambda: twins.is_refused(own, wrong), "the policy is in force", 30)

    taken = {what for what, status in REFUSED.items() if not twins.is_refused(own, status)}

    assert taken == set()
    assert twins.is_refused(other, APPLIED)
    assert twins.is_refused(own, APPLIED, bound=False)
    answer = twins.patch(own, APPLIED)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"]["controlStatus"] == APPLIED["controlStatus"]
