"""What the rightsizer reads around workloads, from the real API server."""

import pytest
from attrs import asdict

from temper_kube.api_server import ApiServer
from temper_kube.kubeconfig import find_access
from temper_plugin_rightsizer.advice.pods import with_pod_bounds
from temper_plugin_rightsizer.advice.records import Advice, Confidence, Resources, Verdict
from temper_plugin_rightsizer.advice.surroundings import (
    Autoscaler,
    Bounds,
    ContainerKind,
    Range,
    consider,
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
    ratio = {"type": "Container", "maxLimitRequestRatio": {"cpu": "2500m"}}
    pods = {"type": "Pod", "max": {"cpu": "4"}, "maxLimitRequestRatio": {"memory": "2"}}
    make("/api/v1", "limitranges", "LimitRange", {"limits": [limit, pods]})
    make("/api/v1", "limitranges", "LimitRange", {"limits": [ratio]}, "another")

    known = read(cluster)

    bounds = known.of(Workload(namespace, "Deployment", "web"), "app").bounds
    assert bounds == Bounds(Range(100, 2000, 2.5), Range(None, 1024 * MIB))
    assert known.pod_bounds[namespace] == Bounds(Range(most=4000), Range(ratio=2.0))


def admitted(cluster, namespace, *containers):
    """Whether the API server takes a pod with containers of these resources, by a dry run."""
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "sized"},
        "spec": {
            "containers": [
                {"name": f"c{number}", "image": IMAGE, "resources": resources}
                for number, resources in enumerate(containers)
            ]
        },
    }
    try:
        cluster.call("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", document)
    except AssertionError as refused:
        return str(refused)
    return ""


def as_resources(wanted):
    return {
        "requests": {"cpu": f"{wanted['cpu_request_millis']}m"},
        "limits": {"cpu": f"{wanted['cpu_limit_millis']}m"},
    }


def test_the_server_takes_a_request_that_was_raised_by_a_ratio(cluster, namespace, make):
    ratio = {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}
    make("/api/v1", "limitranges", "LimitRange", {"limits": [ratio]})
    around = read(cluster).of(Workload(namespace, "Deployment", "web"), "app")
    now, wanted = Resources(2000, 3000), Resources(500, 3000)
    advice = Advice(Verdict.SHARED, now, wanted, Confidence.HIGH, 21_600)

    bounded = consider(advice, around).recommended

    assert "max limit to request ratio" in admitted(
        cluster, namespace, as_resources(asdict(wanted))
    )
    assert bounded == Resources(1500, 3000)
    assert not admitted(cluster, namespace, as_resources(asdict(bounded)))


@pytest.mark.parametrize(
    ("bound", "refused"),
    [
        ({"max": {"cpu": "3"}}, "maximum cpu usage per Pod is 3"),
        ({"min": {"cpu": "1500m"}}, "minimum cpu usage per Pod is 1500m"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, "max limit to request ratio per Pod is 2"),
    ],
)
def test_the_server_takes_what_is_left_of_the_advice_by_the_bounds_of_a_pod(
    cluster, namespace, make, bound, refused
):
    make("/api/v1", "limitranges", "LimitRange", {"limits": [{"type": "Pod", **bound}]})
    now = Resources(1000, 1500)
    rows = [
        {
            "namespace": namespace,
            "owner": "Deployment/web",
            "pod": "",
            "container": name,
            "container_kind": ContainerKind.APP,
            "current": asdict(now),
            "recommended": asdict(wanted),
            "keeps": False,
            "reasons": [],
        }
        for name, wanted in (("a", Resources(500, 1500)), ("b", Resources(600, 1700)))
    ]
    advised = [as_resources(row["recommended"]) for row in rows]

    kept = with_pod_bounds(rows, read(cluster).pod_bounds)

    assert refused in admitted(cluster, namespace, *advised)
    assert not admitted(cluster, namespace, *[as_resources(row["recommended"]) for row in kept])


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
