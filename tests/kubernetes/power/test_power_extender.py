"""The power extender against a real API server: its rights, and the server away."""

import time
from contextlib import suppress

import httpx2
import pytest
from attrs import evolve

from temper_kube import kubeconfig
from temper_plugin_power.placing.subjects import OLD_AFTER_S
from tests.control_plane.cluster import unique, wait_until
from tests.control_plane.severable import Severable
from tests.density.placement.yard import kubeconfig as write_kubeconfig
from tests.kubernetes.power.yard import RIGHTS, TWINS, put_twin
from tests.power.extender.serving import NODE_LABEL, a_pod, asked, serving

ROLE = next(document for document in RIGHTS if document["kind"] == "ClusterRole")
RESOURCES = [rule["resources"][0] for rule in ROLE["rules"]]
IN_VAIN_S = 2.0
"""How long to wait for what is to fail."""
JOULIE = "/apis/joulie.io/v1alpha1"
EVICTED = {
    "joulie.io/last-eviction-from-class": "eco",
    "joulie.io/last-eviction-time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
}


class Clock:
    """The time of the day, and as much more as a test says."""

    ahead_s = 0.0

    def __call__(self):
        return time.time() + self.ahead_s


class Running:
    """An extender that watches, behind a socket."""

    def __init__(self, access):
        self.clock = Clock()
        self._serving = serving(access=access, clock=self.clock)

    def __enter__(self):
        port = self._serving.__enter__()
        self.client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False)
        return self

    def __exit__(self, *raised):
        self.client.close()
        self._serving.__exit__(*raised)

    def takes(self, node, pod):
        answer = self.client.post("/filter", json=asked(node, pod=pod)).json()
        return answer["nodenames"] == [node]

    def score(self, node, pod):
        (score,) = self.client.post("/prioritize", json=asked(node, pod=pod)).json()
        return score["score"]

    def ready(self):
        return self.client.get("/readyz").text


@pytest.fixture
def access_of(cluster, tmp_path):
    """Return the way to the API server of an account with the extender's rights but one."""

    def make(resource="", verb=""):
        name = cluster.account_with_all_but(ROLE, resource, verb)
        path = write_kubeconfig(cluster, tmp_path / name, cluster.token(name))
        return kubeconfig.find_access(str(path))

    return make


class Things:
    """One object of each watched kind, by names of their own. ``changes`` says what each changes.

    A change is a function that makes it, and one that says whether the extender has heard of it.
    """

    def __init__(self, cluster, running):
        self.cluster, self.running = cluster, running
        self.node, self.name = unique("thing"), unique("web")
        self.owner = f"{self.name}-77f"

    def nodes(self):
        metadata = {"name": self.node, "labels": {NODE_LABEL: "eco"}}
        self.cluster.make({"kind": "Node", "apiVersion": "v1", "metadata": metadata})
        return lambda: not self.running.takes(self.node, a_pod("performance"))

    def nodetwins(self):
        put_twin(self.cluster, self.node, "draining")
        return lambda: self.running.score(self.node, a_pod("standard")) == 83

    def nodehardwares(self):
        node = unique("hardware")
        put_twin(self.cluster, node, "unknown")
        made = {"apiVersion": "joulie.io/v1alpha1", "kind": "NodeHardware"}
        made |= {"metadata": {"name": node}, "spec": {"nodeName": node}}
        self._post(f"{JOULIE}/nodehardwares", made)
        status = {"cpu": {"sockets": 2, "totalCores": 8, "capRange": {"maxWattsPerSocket": 4000}}}
        self._patch(f"{JOULIE}/nodehardwares/{node}/status", {"status": status})
        return lambda: self.running.score(node, a_pod("standard")) not in (50, 83)

    def workloadprofiles(self):
        node = unique("profiled")
        self.cluster.make(
            {"kind": "Node", "metadata": {"name": node, "labels": {NODE_LABEL: "eco"}}}
        )
        path = f"{JOULIE}/namespaces/shop/workloadprofiles"
        made = {"apiVersion": "joulie.io/v1alpha1", "kind": "WorkloadProfile"}
        made |= {"metadata": {"name": f"deployment-{self.name}"}}
        made |= {"spec": {"workloadRef": {"kind": "Deployment", "name": self.name}}}
        self._post(path, made)
        status = {"criticality": {"class": "performance"}, "confidence": 0.3}
        self._patch(f"{path}/deployment-{self.name}/status", {"status": status})
        return lambda: not self.running.takes(node, a_pod(owner=self.name))

    def replicasets(self):
        return self._evicted("apps/v1", "replicasets", "ReplicaSet")

    def statefulsets(self):
        return self._evicted("apps/v1", "statefulsets", "StatefulSet")

    def jobs(self):
        return self._evicted("batch/v1", "jobs", "Job")

    def _evicted(self, version, resource, kind):
        node, owner = unique("evicting"), unique(kind.lower())
        self.cluster.make(
            {"kind": "Node", "metadata": {"name": node, "labels": {NODE_LABEL: "eco"}}}
        )
        labels = {"app": owner}
        container = {"name": "app", "image": "registry.example/app:1"}
        spec = {"template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}
        if kind == "Job":
            spec["template"]["spec"]["restartPolicy"] = "Never"
            spec["suspend"] = True
        else:
            spec |= {"replicas": 0, "selector": {"matchLabels": labels}}
        if kind == "StatefulSet":
            spec["serviceName"] = owner
        metadata = {"name": owner, "annotations": EVICTED}
        made = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        self._post(f"/apis/{version}/namespaces/shop/{resource}", made)
        pod = a_pod("standard", owner="unprofiled")
        pod["metadata"]["ownerReferences"] = [{"kind": kind, "name": owner, "controller": True}]
        return lambda: not self.running.takes(node, pod)

    def _post(self, path, document):
        self.cluster.call("POST", path, document)

    def _patch(self, path, change):
        self.cluster.call("PATCH", path, change, **{"Content-Type": "application/merge-patch+json"})


def test_every_kind_that_is_watched_reaches_the_answers(cluster, access_of):
    with Running(access_of()) as running:
        wait_until(lambda: running.ready() == "ok\n", "readiness", 60)
        things = Things(cluster, running)

        for resource in RESOURCES:
            wait_until(getattr(things, resource)(), f"{resource} are heard of", 30)


@pytest.mark.parametrize("verb", ["list", "watch"])
@pytest.mark.parametrize("resource", RESOURCES)
def test_without_a_right_exactly_that_kind_is_not_heard_of(cluster, access_of, resource, verb):
    with Running(access_of(resource, verb)) as running:
        others = [each for each in RESOURCES if each != resource]
        wait_until(lambda: not any(f"{each}:" in running.ready() for each in others), "others", 60)
        if verb == "watch":
            wait_until(lambda: running.ready() == "ok\n", "a list", 60)
        things = Things(cluster, running)

        hears = getattr(things, resource)()
        with suppress(AssertionError):
            wait_until(hears, "nothing", IN_VAIN_S)

        assert not hears()
        assert (running.ready() == "ok\n") is (verb == "watch")


def test_no_right_is_given_that_is_not_tested():
    assert all(rule["verbs"] == ["list", "watch"] for rule in ROLE["rules"])
    assert all(len(rule["resources"]) == 1 for rule in ROLE["rules"])
    assert all(hasattr(Things, resource) for resource in RESOURCES)


def test_the_last_state_is_kept_while_the_server_is_away_and_scores_become_neutral(
    cluster, access_of
):
    node, pod = unique("away"), a_pod("performance", owner="unprofiled")
    put_twin(cluster, node, "eco")
    direct = access_of()
    way = Severable(direct.host, direct.port)
    try:
        with Running(evolve(direct, port=way.port, renewed=None)) as running:
            wait_until(lambda: running.score(node, pod) == 83, "the twin", 60)
            wait_until(lambda: running.ready() == "ok\n", "readiness", 60)

            way.cut()
            put_twin(cluster, node, "performance")
            accepted = way.accepted
            at_once = (running.takes(node, pod), running.score(node, pod))
            running.clock.ahead_s = OLD_AFTER_S + 30
            later = (running.takes(node, pod), running.score(node, pod), running.ready())
            running.clock.ahead_s = 0.0
            way.mend()

            assert at_once == (False, 83)
            assert later == (False, 50, "ok\n")
            assert accepted >= len(RESOURCES)
            wait_until(lambda: running.takes(node, pod), "the watch goes on", 60)
            assert running.score(node, pod) == 98
    finally:
        way.close()


def test_no_request_of_a_scheduler_reaches_the_api_server(cluster, access_of):
    """With every way cut for good, answers are as they were."""
    node = unique("cached")
    put_twin(cluster, node, "eco")
    direct = access_of()
    way = Severable(direct.host, direct.port)
    with Running(evolve(direct, port=way.port, renewed=None)) as running:
        wait_until(lambda: running.score(node, a_pod("standard")) == 93, "the twin", 60)
        way.close()

        answers = [running.takes(node, a_pod("performance")) for _ in range(20)]
        scores = [running.score(node, a_pod(owner=f"new{number}")) for number in range(20)]

    assert answers == [False] * 20
    assert scores == [93] * 20


def test_a_deleted_twin_is_forgotten(cluster, access_of):
    node, pod = unique("gone"), a_pod("performance")
    put_twin(cluster, node, "eco")
    with Running(access_of()) as running:
        wait_until(lambda: not running.takes(node, pod), "the twin", 60)

        assert cluster.client.delete(f"{TWINS}/{node}").status_code == 200

        wait_until(lambda: running.takes(node, pod), "it is forgotten", 60)
