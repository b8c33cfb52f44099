"""What the rightsizer reads around workloads, from the real API server."""

import pytest

from temper_kube.api_server import ApiServer
from temper_kube.kubeconfig import find_access
from temper_plugin_rightsizer.advice.surroundings import (
    Autoscaler,
    Bounds,
    ContainerKind,
    Range,
)
from temper_plugin_rightsizer.cluster.surroundings import ClusterSurroundings
from temper_plugin_rightsizer.fleet.workloads import Owners, Workload
from tests.control_plane.cluster import unique, wait_until

MIB = 1024 * 1024
IMAGE = "registry.example/app:1"


@pytest.fixture
def namespace(cluster):
    name = unique("sizes")
    document = {"kind": "Namespace", "metadata": {"name": name}}
    cluster.make(document)
    yield name
    cluster.delete(document)


@pytest.fixture
def make(cluster, namespace):
    def make(group, resource, kind, spec, name="it"):
        head = {"kind": kind, "metadata": {"name": name}}
        version = group.removeprefix("/apis/").removeprefix("/api/")
        path = f"{group}/namespaces/{namespace}/{resource}"
        return cluster.call("POST", path, {"apiVersion": version, **head, "spec": spec})

    return make


def read(cluster, owners=None):
    surroundings = ClusterSurroundings(owners or Owners())
    with ApiServer(find_access(str(cluster.directory / "kubeconfig"))) as api:
        surroundings.read(api)
    return surroundings


def test_a_pod_with_all_kinds_of_containers(cluster, namespace, make):
    sized = {"cpu": "500m", "memory": "128Mi"}
    resources = {"requests": sized, "limits": sized}
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    rest = {"image": IMAGE, "resources": resources}
    spec = {
        "containers": [{"name": "app", **rest, "resizePolicy": policy}],
        "initContainers": [
            {"name": "setup", **rest},
            {"name": "proxy", **rest, "restartPolicy": "Always"},
        ],
    }
    make("/api/v1", "pods", "Pod", spec, "web")

    known = read(cluster)

    workload = Workload(namespace, "Pod", "web")
    app, setup, proxy = (known.of(workload, name) for name in ("app", "setup", "proxy"))
    assert (setup.kind, proxy.kind) == (ContainerKind.INIT, ContainerKind.SIDECAR)
    assert app.kind is ContainerKind.APP
    assert app.resize == "with a restart of the container for memory"
    assert proxy.resize == "without a restart"
    assert app.is_guaranteed
    assert known.unknown == []


def test_the_autoscalers_of_a_workload(cluster, namespace, make):
    def metric(name, percent):
        target = {"type": "Utilization", "averageUtilization": percent}
        return {"type": "Resource", "resource": {"name": name, "target": target}}

    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 5, "metrics": [metric("cpu", 60)]}
    make("/apis/autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", spec)
    value = {"type": "AverageValue", "averageValue": "500m"}
    by_value = {"type": "Resource", "resource": {"name": "cpu", "target": value}}
    other = {**spec, "scaleTargetRef": {**target, "name": "api"}, "metrics": [by_value]}
    group = "/apis/autoscaling/v2"
    make(group, "horizontalpodautoscalers", "HorizontalPodAutoscaler", other, "by-value")

    known = read(cluster)

    web, api = (known.of(Workload(namespace, "Deployment", name), "app") for name in ("web", "api"))
    assert web.autoscalers == (Autoscaler("the HPA it", cpu_percent=60),)
    assert api.autoscalers == (Autoscaler("the HPA by-value"),)
    assert known.of(Workload(namespace, "Deployment", "else"), "app").autoscalers == ()


def test_the_bounds_of_a_namespace(cluster, namespace, make):
    limit = {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "2", "memory": "1Gi"}}
    pods = {"type": "Pod", "max": {"cpu": "4"}}
    make("/api/v1", "limitranges", "LimitRange", {"limits": [limit, pods]})

    bounds = read(cluster).of(Workload(namespace, "Deployment", "web"), "app").bounds

    assert bounds == Bounds(Range(100, 2000), Range(None, 1024 * MIB))


def test_what_a_quota_leaves(cluster, namespace, make):
    hard = {"requests.cpu": "2", "limits.memory": "1Gi"}
    made = make("/api/v1", "resourcequotas", "ResourceQuota", {"hard": hard})
    scoped = {"hard": {"requests.cpu": "1"}, "scopes": ["BestEffort"]}
    with pytest.raises(AssertionError, match="unsupported scope"):
        make("/api/v1", "resourcequotas", "ResourceQuota", scoped, "scoped")
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/{made['metadata']['name']}"
    used = {"status": {"hard": hard, "used": {"requests.cpu": "500m", "limits.memory": "0"}}}
    merge = {"Content-Type": "application/merge-patch+json"}
    cluster.call("PATCH", f"{path}/status", used, **merge)

    def left():
        return read(cluster).quotas.left.get((namespace, "cpu_request_millis"))

    wait_until(lambda: left() is not None, "the quota has a status")
    assert left()[0] == "it"
    assert left()[1] in (1500, 2000)  # a quota controller, if one runs, counts no pod


def test_this_release_resizes_pods_in_place(cluster):
    assert read(cluster).can_resize
