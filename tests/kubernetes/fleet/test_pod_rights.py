"""What the page of a cluster may read of pods on a real API server, and that it needs all of it."""

import copy

import pytest

from temper_core import MachineError
from temper_kube.failures import ForbiddenError
from temper_plugin_dashboard.fleet.masking import HIDDEN
from temper_plugin_dashboard.fleet.pod_details import PodDetails, PodQuestion
from tests.control_plane.cluster import access_by, unique
from tests.kubernetes.fleet.workloads import SECRET, kubelet, set_pod, web_pod
from tests.kubernetes.fleet.yard import PARTS, POD_RIGHTS

ROLE = POD_RIGHTS[0]
FAILS_WITHOUT = {
    "": set(),
    "events": {"events"},
    "pods": {"manifest", "revisions"},
    "replicasets": {"revisions"},
    "controllerrevisions": {"revisions of a set"},
    "pods/log": {"logs"},
}
LINES = ["2026-11-28T04:18:22Z begun", "2026-11-28T04:18:23Z <b>bold</b>"]


@pytest.fixture
def details_of(cluster, tmp_path):
    """Return a function that makes what is read by an account without a right."""

    def make(resource):
        role = copy.deepcopy(ROLE)
        left = [rule for rule in role["rules"] if rule["resources"] != [resource]]
        account = cluster.account_with_all_but({**role, "rules": left})
        token = tmp_path / "token"
        token.write_text(cluster.token(account))
        return PodDetails(access_by(cluster.url, token, cluster.ca), PARTS)

    return make


@pytest.fixture
def shop(cluster, tmp_path):
    """A node with a pod of a Deployment and one of a DaemonSet, and its kubelet."""
    node = unique("node")
    cluster.node(node)
    web, of_set = web_pod(cluster, node), set_pod(cluster, node)
    with kubelet(cluster, node, tmp_path, LINES) as asked:
        yield web, of_set, asked
    cluster.without_node(node)


def reads(details, part, pod):
    try:
        details.read(part, PodQuestion("default", pod, "app"))
    except ForbiddenError:
        return False
    return True


@pytest.mark.parametrize("resource", FAILS_WITHOUT)
def test_each_right_is_needed_for_its_parts_alone(details_of, shop, resource):
    web, of_set, _ = shop
    details = details_of(resource)

    works = {part: reads(details, part, web) for part in PARTS}
    works["revisions of a set"] = resource == "pods" or reads(details, "revisions", of_set)

    assert {part for part in works if not works[part]} == FAILS_WITHOUT[resource]


def test_no_rule_has_more_than_one_resource_and_verb():
    assert all(len(rule["resources"]) == len(rule["verbs"]) == 1 for rule in ROLE["rules"])
    assert {rule["resources"][0] for rule in ROLE["rules"]} == set(FAILS_WITHOUT) - {""}


def test_the_events_of_a_pod_are_those_that_the_server_has(details_of, shop):
    web, of_set, _ = shop
    details = details_of("")

    (event,) = details.read("events", PodQuestion("default", web))["events"]

    assert (event["type"], event["reason"], event["count"]) == ("Warning", "BackOff", 3)
    assert (event["last"], event["from"]) == ("2026-11-28T04:18:22Z", "kubelet")
    assert details.read("events", PodQuestion("default", of_set))["events"] == []


def test_the_manifest_has_no_value_of_the_environment(details_of, shop):
    found = details_of("").read("manifest", PodQuestion("default", shop[0]))["manifest"]

    (container,) = found["spec"]["containers"]
    assert container["env"] == [{"name": "KEY", "value": HIDDEN}]
    assert found["status"]["phase"] == "Running"
    assert SECRET not in str(found)


def test_the_revisions_of_a_deployment_are_compared(details_of, shop):
    found = details_of("").read("revisions", PodQuestion("default", shop[0]))

    second, first = found["revisions"]
    changed = {each["path"]: (each["before"], each["after"]) for each in second["changes"]}
    container = "spec.containers[app]"
    assert found["owner"]["kind"] == "Deployment"
    assert (second["number"], second["is_own"], first["is_own"]) == (2, True, False)
    assert changed == {
        f"{container}.image": ("registry.example/web:1", "registry.example/web:2"),
        f"{container}.env[KEY].value": (HIDDEN, HIDDEN),
        f"{container}.env[GONE].name": ("GONE", None),
        f"{container}.env[GONE].value": (HIDDEN, None),
    }
    assert first["changes"] is None


def test_the_revisions_of_a_daemon_set_are_compared(details_of, shop):
    found = details_of("").read("revisions", PodQuestion("default", shop[1]))

    second, first = found["revisions"]
    assert found["owner"]["kind"] == "DaemonSet"
    assert (second["is_own"], first["is_own"]) == (True, False)
    assert [each["path"] for each in second["changes"]] == ["spec.containers[app].image"]


def test_the_log_of_a_container_is_that_of_the_kubelet(details_of, shop):
    web, _, asked = shop

    found = details_of("").read("logs", PodQuestion("default", web, "app"))

    assert found["lines"] == LINES
    assert not found["is_cut"]
    (path,) = asked
    assert path.startswith(f"/containerLogs/default/{web}/app?")
    assert "tailLines=300" in path


def test_a_container_that_the_pod_does_not_have_is_named(details_of, shop):
    with pytest.raises(MachineError, match="container other is not valid for pod"):
        details_of("").read("logs", PodQuestion("default", shop[0], "other"))
