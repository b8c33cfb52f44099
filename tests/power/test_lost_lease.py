"""An operator that loses its Lease in the middle of a cycle."""

import pytest
from structlog.testing import capture_logs

from temper_kube.access import Access
from temper_plugin_power.controller.operator import Operator
from temper_plugin_power.controller.stored_profiles import PROFILES
from temper_plugin_power.controller.twins import HARDWARES, TWINS
from temper_plugin_power.controller.watching import NODES, PODS
from temper_plugin_power.settings.classifier import ClassifierSettings
from temper_plugin_power.settings.operator import OperatorSettings
from temper_plugin_power.settings.power import PowerSettings
from tests.control_plane.cluster import wait_until
from tests.kube_client.made_server import MadeServer
from tests.patience import PATIENCE_S

LEASES = "/apis/coordination.k8s.io/v1/namespaces/temper/leases"
LEASE = f"{LEASES}/temper-power-operator"
SETTINGS = PowerSettings(
    node_selector="",
    classifier=ClassifierSettings(prometheus_url="", interval="1s"),
    operator=OperatorSettings(interval="1s"),
)
LABELS = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "joulie.io/hw.gpu-count": "8"}
NOBODY = (404, {"kind": "Status", "message": "not found"})


def a_node(name):
    metadata = {"name": name, "uid": name, "labels": LABELS, "resourceVersion": "1"}
    ready = [{"type": "Ready", "status": "True"}]
    return {"metadata": metadata, "status": {"allocatable": {"cpu": "64"}, "conditions": ready}}


class Cluster:
    """Two nodes, and a Lease that another replica takes while the first object is written."""

    def __init__(self):
        self.server = MadeServer()
        self.leads, self.lease = lambda: False, NOBODY
        listed = {NODES.path: [a_node("n1"), a_node("n2")], PODS.path: []}
        for path in (NODES.path, PODS.path, PROFILES, TWINS, HARDWARES):
            self.server.answers[path] = self.answering(path, listed.get(path, []))
        self.server.answers[LEASES] = {}
        self.server.answers[LEASE] = lambda _: self.lease

    def answering(self, path, items):
        def answer(query):
            if query.get("watch"):
                return []
            if ("POST", path, {}) in self.server.asked:
                self.lose()
            return {"metadata": {"resourceVersion": "1"}, "items": items}

        return answer

    def lose(self):
        metadata = {"name": "temper-power-operator", "resourceVersion": "7"}
        spec = {"holderIdentity": "another", "leaseDurationSeconds": 600}
        self.lease = {"metadata": metadata, "spec": spec}
        wait_until(lambda: not self.leads(), "the Lease is lost", PATIENCE_S)

    def written(self):
        """Return the paths of what was written, without those of the Lease."""
        asked = list(self.server.asked)
        return [path for how, path, _ in asked if how != "GET" and not path.startswith(LEASES)]


@pytest.fixture
def cluster():
    made = Cluster()
    yield made
    made.server.close()


def test_an_operator_that_loses_its_lease_writes_nothing_more(cluster):
    port = int(cluster.server.url.rpartition(":")[2])
    operator = Operator(SETTINGS, Access("127.0.0.1", port, is_tls=False, namespace="temper"))
    cluster.leads = lambda: operator.leader.is_leading

    with capture_logs() as logs:
        operator.start()
        try:
            wait_until(
                lambda: {"nodes_not_written", "hardware_not_written"} <= {e["event"] for e in logs},
                "the cycle ends",
                PATIENCE_S,
            )
        finally:
            operator.close()

    assert cluster.written() == [TWINS]
