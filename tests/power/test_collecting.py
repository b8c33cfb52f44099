"""Which profiles of workloads the operator deletes."""

import pytest

from temper_kube.access import Access
from temper_kube.api_server import ApiServer
from temper_plugin_power.controller.classifier import Cluster
from temper_plugin_power.controller.collecting import Collector
from temper_plugin_power.controller.pod_table import PodTable
from temper_plugin_power.controller.stored_profiles import stored_profile
from tests.kube_client.made_server import MadeServer

FORBIDDEN = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "no"}
DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"


class Profiles:
    def __init__(self, *names):
        self._names = names

    def records(self):
        return [profile(name) for name in self._names]


def profile(name):
    metadata = {
        "namespace": "shop",
        "name": name,
        "uid": name,
        "resourceVersion": "1",
        "labels": {"app.kubernetes.io/managed-by": "temper-power"},
    }
    reference = {"kind": "Deployment", "name": name}
    return stored_profile({"metadata": metadata, "spec": {"workloadRef": reference}})


@pytest.fixture
def server():
    made = MadeServer()
    yield made
    made.close()


def test_a_workload_that_may_not_be_read_keeps_no_other_profile(server):
    server.answers[f"{DEPLOYMENTS}/a"] = (403, FORBIDDEN)
    for name in ("b", "c"):
        server.answers[profile(name).path] = (200, {"kind": "Status", "status": "Success"})
    port = int(server.url.rpartition(":")[2])
    cluster = Cluster(PodTable(), Profiles("a", "b", "c"), frozenset)

    with ApiServer(Access("127.0.0.1", port, is_tls=False)) as api:
        deleted = Collector(cluster, api).collect()

    assert deleted == 2
