"""The pod source against a real API server, in the name of the agent's own service account."""

from collections import Counter

import pytest

from temper_core import QosClass
from tests.control_plane.cluster import pod, unique, wait_until
from tests.core.node.trees import make_cgroup

MANY = 250


@pytest.fixture(scope="module", autouse=True)
def classes(cluster):
    for name, value in (("vital", 1_000_000), ("idle", -1000)):
        cluster.make(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
        )


STATIC = "5b1f2a7c" * 4


def slice_of(uid, qos="-burstable"):
    escaped = uid.replace("-", "_")
    return f"kubepods.slice/kubepods{qos}.slice/kubepods{qos}-pod{escaped}.slice"


def test_the_pods_of_this_node_come_with_all_that_decides_their_tier(cluster, node, access, watch):
    annotations = {"temper.codes/workload-profile": "mysql-innodb"}
    cluster.run(
        pod("db", node, "shop", limit="1500m", priority_class="vital", annotations=annotations)
    )
    cluster.run(pod("elsewhere", unique("node"), "shop"))

    found = watch(access, node).pods()

    assert list(found) == ["shop/db"]
    db = found["shop/db"]
    assert (db.priority, db.priority_class) == (1_000_000, "vital")
    assert db.qos_class is QosClass.GUARANTEED
    assert (db.cpu_request_millis, db.cpu_limit_millis) == (1500, 1500)
    assert db.wanted_profile == ("temper.codes/workload-profile", "mysql-innodb")


def test_a_pod_that_was_deleted_is_gone_before_its_cgroup_is(
    cluster, node, access, watch, made_host
):
    late = cluster.run(pod("short", node, cpu="100m"))
    make_cgroup(made_host.cgroups, slice_of(late["metadata"]["uid"]))
    watched = watch(access, node)
    watched.until(lambda pods: [each.name for each in pods] == ["short"], "the pod")

    cluster.delete(late)

    watched.until(lambda pods: not pods, "nothing but its cgroup, which is no pod")


def test_news_are_heard_without_being_asked_for(cluster, node, access, watch):
    watched = watch(access, node)
    assert watched.names() == set()
    wait_until(lambda: not watched.hears(0.2) or watched.pods(), "silence")

    cluster.run(pod("late", node))
    is_heard = watched.hears()

    assert is_heard
    watched.until(lambda pods: [each.name for each in pods] == ["late"], "the new pod")


def test_250_pods_arrive_change_class_and_leave(cluster, node, access, watch):
    watched = watch(access, node)
    batch = [pod(f"p{number}", node, cpu="10m") for number in range(MANY)]

    for document in batch:
        cluster.run(document)
    watched.until(lambda pods: len(pods) == MANY, "all pods", 60)
    # A priority is for a pod's life: who changes class comes anew by the same name.
    for document in batch[:50]:
        cluster.delete(document)
        cluster.run(pod(document["metadata"]["name"], node, cpu="20m", priority_class="vital"))
    for document in batch[50:100]:
        cluster.patch(
            document, {"metadata": {"annotations": {"temper.codes/workload-profile": "x"}}}
        )
    resized = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "30m"}}}]}}
    strategic = {"Content-Type": "application/strategic-merge-patch+json"}
    for document in batch[100:150]:
        path = f"/api/v1/namespaces/default/pods/{document['metadata']['name']}/resize"
        cluster.call("PATCH", path, resized, **strategic)

    def has_settled(pods):
        return Counter(
            (each.priority, each.cpu_request_millis, each.wanted_profile is not None)
            for each in pods
        ) == {
            (1_000_000, 20, False): 50,
            (0, 10, True): 50,
            (0, 30, False): 50,
            (0, 10, False): 100,
        }

    watched.until(has_settled, "every change", 60)
    for document in batch:
        cluster.delete(document)
    watched.until(lambda pods: not pods, "no pods", 60)


def test_a_pod_that_no_kubelet_has_accepted_counts_from_its_cgroup_on(
    cluster, node, access, watch, made_host
):
    document = pod("huge", node, cpu="1000", priority_class="vital")
    uid = cluster.make(document)["metadata"]["uid"]
    watched = watch(access, node)
    before = watched.names()

    make_cgroup(made_host.cgroups, slice_of(uid))
    watched.until(lambda pods: [each.name for each in pods] == ["huge"], "the pod")

    assert before == set()


@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
def test_a_pod_is_found_in_the_cgroup_of_its_uid(cluster, node, access, watch, made_host, driver):
    uid = cluster.run(pod("web", node, cpu="100m"))["metadata"]["uid"]
    path = slice_of(uid) if driver == "systemd" else f"kubepods/burstable/pod{uid}"
    watched = watch(access, node)
    before = watched.pods()["default/web"].cgroups

    make_cgroup(made_host.cgroups, path)
    watched.until(lambda pods: pods[0].cgroups, "the cgroup")

    assert before == ()
    assert watched.pods()["default/web"].cgroups == (f"{path}/",)


def test_the_cgroup_of_a_pod_that_is_not_listed_is_a_pod_of_its_own(
    cluster, node, access, watch, made_host
):
    cluster.run(pod("web", node, cpu="100m"))
    unlisted = "0f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f"

    make_cgroup(made_host.cgroups, slice_of(unlisted))

    assert watch(access, node).names() == {"web", "pod-0f1c2d3e"}


def test_a_pod_that_has_ended_is_gone_though_its_cgroup_is_not(
    cluster, node, access, watch, made_host
):
    document = pod("job", node, cpu="100m")
    uid = cluster.run(document)["metadata"]["uid"]
    make_cgroup(made_host.cgroups, slice_of(uid))
    watched = watch(access, node)
    assert watched.names() == {"job"}

    cluster.patch(document, {"status": {"phase": "Succeeded"}}, "/status")

    watched.until(lambda pods: not pods, "no pod")


def test_a_pod_keeps_its_tier_to_the_end_of_its_grace_period(
    cluster, node, access, watch, made_host
):
    document = pod("db", node, limit="2", priority_class="vital")
    document["spec"]["terminationGracePeriodSeconds"] = 30
    uid = cluster.run(document)["metadata"]["uid"]
    directory = make_cgroup(made_host.cgroups, slice_of(uid, qos=""))
    watched = watch(access, node)
    watched.until(lambda pods: pods[0].cgroups, "the cgroup")

    cluster.delete(document, gracePeriodSeconds=30)
    (leaving,) = watched.until(
        lambda pods: pods if pods[0].cpu_request_millis == 0 else None, "a pod that leaves"
    )
    directory.rmdir()

    assert (leaving.name, leaving.priority) == ("db", 1_000_000)
    watched.until(lambda pods: not pods, "no pod")


def test_the_uid_of_a_static_pod_is_that_of_its_mirror_where_events_are_told(
    cluster, node, access, watch, account
):
    marks = {"kubernetes.io/config.mirror": STATIC, "kubernetes.io/config.hash": STATIC}
    uid = cluster.run(pod("etcd", node, annotations=marks))["metadata"]["uid"]

    found = watch(access, node).pods()["default/etcd"]

    assert found.uid == STATIC
    assert account.uids() == {STATIC: uid}
