"""Which running pods of a namespace ``kubectl temper resize --in-place`` takes."""

import pytest

from temper_kube.api_server import ApiServer
from temper_kube.kubeconfig import find_access
from temper_plugin_rightsizer.applying.edits import Edit
from temper_plugin_rightsizer.applying.targets import Choice, Refusal, edits_of
from tests.kube_client.made_server import listed

SHOP = "/api/v1/namespaces/shop"
APPS = "/apis/apps/v1/namespaces/shop"
PODS, REPLICA_SETS = f"{SHOP}/pods", f"{APPS}/replicasets"
OWN = {"kind": "ReplicaSet", "name": "web-abc", "uid": "u-abc", "controller": True}
OLDER = {**OWN, "name": "web-aaa", "uid": "u-aaa"}
DEPLOYMENT = {"kind": "Deployment", "name": "web", "uid": "u-web", "controller": True}
UNCONTROLLED = {
    "no owner": [],
    "no list": {"uid": "u-abc", "controller": True},
    "no objects": ["u-abc", None, 7],
    "an owner that is no controller": [{**OWN, "controller": False}],
    "a text for true": [{**OWN, "controller": "true"}],
    "a controller without a uid": [{**OWN, "uid": None}],
    "an empty uid": [{**OWN, "uid": ""}],
    "a list for a uid": [{**OWN, "uid": ["u-abc"]}],
}
OF_OTHERS = {
    "the ReplicaSet of the canary": [{**OWN, "name": "web-canary-abc", "uid": "u-canary-abc"}],
    "another kind of the same name": [{**OWN, "kind": "StatefulSet", "uid": "u-stateful"}],
    "the ReplicaSet before it was made anew": [{**OWN, "uid": "u-abc-before"}],
    "the ReplicaSet of the Deployment before": [{**OWN, "uid": "u-orphan"}],
    "a ReplicaSet without an owner": [{**OWN, "uid": "u-free"}],
    "the Deployment itself": [DEPLOYMENT],
    "a second controller": [{**OWN, "uid": "u-other"}, OWN],
}


def workload(uid="u-web", **more):
    selector = {"matchLabels": {"app": "web"}, **more}
    metadata = {"namespace": "shop", "name": "web", "uid": uid}
    return {"metadata": metadata, "spec": {"selector": selector}}


def owned(name, uid, owners):
    return {"metadata": {"name": name, "uid": uid, "ownerReferences": owners}}


def pod(name, owners):
    container = {"name": "app", "resources": {"limits": {"cpu": "2"}}}
    metadata = {"namespace": "shop", "name": name, "labels": {"app": "web"}}
    return {
        "metadata": {**metadata, "ownerReferences": owners},
        "spec": {"containers": [container]},
    }


@pytest.fixture
def shop(made):
    """A namespace with the Deployment ``web``, and ReplicaSets of it and of others."""
    made.answers[SHOP] = {"metadata": {"name": "shop"}}
    made.answers[f"{APPS}/deployments/web"] = workload()
    made.answers[REPLICA_SETS] = listed(
        owned("web-abc", "u-abc", [DEPLOYMENT]),
        owned("web-aaa", "u-aaa", [DEPLOYMENT]),
        owned("web-canary-abc", "u-canary-abc", [{**DEPLOYMENT, "uid": "u-canary"}]),
        owned("web-orphan", "u-orphan", [{**DEPLOYMENT, "uid": "u-web-before"}]),
        owned("web-free", "u-free", []),
        owned("web-odd", "", [DEPLOYMENT]),
    )
    made.answers[PODS] = listed()
    return made


@pytest.fixture
def found(shop, kubeconfig_to):
    """Return what is found for a report on one workload."""

    def find(owner="Deployment/web"):
        row = {
            "namespace": "shop",
            "owner": owner,
            "container": "app",
            "current": {"cpu_limit_millis": 2000},
            "recommended": {"cpu_limit_millis": 3000},
        }
        with ApiServer(find_access(str(kubeconfig_to(shop.url)))) as api:
            return list(edits_of(api, {"containers": [row]}, Choice(in_place=True)))

    return find


@pytest.mark.parametrize("owners", UNCONTROLLED.values(), ids=UNCONTROLLED)
def test_a_pod_without_a_controller_that_has_the_labels_is_refused(shop, found, owners):
    shop.answers[PODS] = listed(pod("stranger", owners), pod("web-1", [OWN]))

    left, edit = found()

    why = "it has the labels of Deployment/web, which does not control it"
    assert left == Refusal("shop/Pod/stranger", why)
    assert edit.title == "shop/Pod/web-1"


@pytest.mark.parametrize("owners", OF_OTHERS.values(), ids=OF_OTHERS)
def test_a_pod_of_another_controller_is_left_out(shop, found, owners):
    shop.answers[PODS] = listed(pod("canary", owners), pod("web-1", [OWN]))

    assert [each.title for each in found()] == ["shop/Pod/web-1"]


def test_pods_of_all_revisions_of_a_deployment_are_taken(shop, found):
    other = {"kind": "Config", "name": "web", "uid": "u-config"}
    shop.answers[PODS] = listed(pod("web-1", [OWN]), pod("web-2", [other, OLDER]))

    assert [each.title for each in found()] == ["shop/Pod/web-1", "shop/Pod/web-2"]


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_a_workload_made_anew_takes_no_pod_of_the_one_before(shop, found, kind):
    shop.answers[f"{APPS}/{kind.lower()}s/web"] = workload()
    now = {"kind": kind, "name": "web", "uid": "u-web", "controller": True}
    before = {**now, "uid": "u-web-before"}
    shop.answers[PODS] = listed(pod("web-0", [now]), pod("web-1", [before]))

    (edit,) = found(f"{kind}/web")

    assert isinstance(edit, Edit)
    assert edit.title == "shop/Pod/web-0"
    assert REPLICA_SETS not in {path for _, path, _ in shop.asked}


def test_a_workload_without_a_uid_controls_nothing(shop, found):
    shop.answers[f"{APPS}/deployments/web"] = workload(uid="")
    shop.answers[PODS] = listed(pod("web-1", []), pod("web-2", [{**OWN, "uid": ""}]))

    assert not any(isinstance(each, Edit) for each in found())


def test_the_replica_sets_and_pods_are_asked_for_by_the_labels(shop, found):
    found()

    asked = {path: query.get("labelSelector") for _, path, query in shop.asked}
    assert (asked[REPLICA_SETS], asked[PODS]) == ("app=web", "app=web")


def test_without_the_right_to_list_replica_sets_no_pod_is_taken(shop, found):
    shop.answers[REPLICA_SETS] = (
        403,
        {"kind": "Status", "message": 'cannot list resource "replicasets" in API group "apps"'},
    )
    shop.answers[PODS] = listed(pod("web-1", [OWN]))

    (left,) = found()

    assert left.title == "shop/Deployment/web"
    assert "replicasets" in left.why
