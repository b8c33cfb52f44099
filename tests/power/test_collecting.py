"""Which profiles of workloads the operator deletes."""

from contextlib import contextmanager

import pytest

from temper_kube.access import Access
from temper_kube.api_server import ApiServer
from temper_plugin_power.controller.classifier import Cluster
from temper_plugin_power.controller.collecting import Collector
from temper_plugin_power.controller.pod_table import PodTable
from temper_plugin_power.controller.stored_profiles import stored_profile
from tests.kube_client.made_server import DROP, MadeServer

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


@contextmanager
def collecting(server, *names):
    port = int(server.url.rpartition(":")[2])
    cluster = Cluster(PodTable(), Profiles(*names), frozenset)
    with ApiServer(Access("127.0.0.1", port, is_tls=False)) as api:
        yield Collector(cluster, api)


def test_a_workload_that_may_not_be_read_keeps_no_other_profile(server):
    server.answers[f"{DEPLOYMENTS}/a"] = (403, FORBIDDEN)
    for name in ("b", "c"):
        server.answers[profile(name).path] = (200, {"kind": "Status", "status": "Success"})

    with collecting(server, "a", "b", "c") as collector:
        deleted = collector.collect()

    assert deleted == 2


def test_a_server_that_does_not_answer_ends_the_cycle(server):
    server.answers[f"{DEPLOYMENTS}/a"] = DROP

    with collecting(server, "a", "b", "c") as collector:
        deleted = collector.collect()

    assert deleted == 0
    assert [path for _, path, _ in server.asked] == [f"{DEPLOYMENTS}/a"]


def test_the_next_cycle_goes_on_behind_the_request_without_an_answer(server):
    server.answers[f"{DEPLOYMENTS}/a"] = DROP
    for name in ("b", "c"):
        server.answers[profile(name).path] = (200, {"kind": "Status", "status": "Success"})

    with collecting(server, "a", "b", "c") as collector:
        deleted = [collector.collect(), collector.collect()]

    assert deleted == [0, 2]
