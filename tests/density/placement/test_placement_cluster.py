"""The extender against a real API server: its rights, and what it does while the server is away."""

import time
from contextlib import suppress

import pytest
from starlette.testclient import TestClient

from temper_core import Tier
from temper_plugin_density.cluster_access import find_access
from temper_plugin_density.placement.app import Extender
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.scoring import OLD_AFTER_S
from tests.control_plane.cluster import pod, wait_until
from tests.density.placement.made import READER, pod_object, told
from tests.density.placement.yard import RIGHTS, kubeconfig

ROLE = next(document for document in RIGHTS if document["kind"] == "ClusterRole")
KNOWN, HEARD = "nodes are known", "a node that changes is heard of"
COUNTED, FOLLOWED = "bound pods are counted", "a pod that is bound later is counted"
READY = "it becomes ready"
EVERYTHING = {KNOWN, HEARD, COUNTED, FOLLOWED, READY}
FAILS_WITHOUT = {
    ("nodes", "list"): {KNOWN, HEARD, COUNTED, FOLLOWED, READY},
    ("nodes", "watch"): {HEARD},
    ("pods", "list"): {COUNTED, FOLLOWED, READY},
    ("pods", "watch"): {FOLLOWED},
}
IN_VAIN_S = 2.0
"""How long to wait for what is to fail."""
WANTED = pod_object("new", Tier.CRITICAL, "1")


@pytest.fixture
def account(cluster, tmp_path):
    """Write a kubeconfig of an account with the extender's rights but one."""

    def make(resource="", verb=""):
        name = cluster.account_with_all_but(ROLE, resource, verb)
        return kubeconfig(cluster, tmp_path / name, cluster.token(name))

    return make


class Clock:
    """The time of the day, and as much more as a test says."""

    ahead_s = 0.0

    def __call__(self):
        return time.time() + self.ahead_s


class Running:
    """An extender that watches, in this process."""

    def __init__(self, path):
        self.clock = Clock()
        extender = Extender(READER, Ledger(self.clock))
        self.client = TestClient(extender.application(find_access(path)))

    def __enter__(self):
        self.client.__enter__()
        return self

    def __exit__(self, *raised):
        self.client.__exit__(*raised)

    def of(self, node):
        """Return what a critical pod would find on the node."""
        body = {"Pod": WANTED, "NodeNames": [node]}
        (found,) = self.client.post("/debug/score", json=body).json()["nodes"]
        return found

    def fenced(self, node):
        return self.of(node)["inputs"].get("fenced_after")

    def is_ready(self):
        return self.client.get("/readyz").is_success

    def lists(self):
        said = self.client.get("/metrics").text.splitlines()
        mine = [line for line in said if 'watch_lists_total{resource="nodes"}' in line]
        return sum(float(line.split()[1]) for line in mine)

    def is_up(self):
        said = self.client.get("/metrics").text
        return 'watch_up{resource="nodes"} 1.0' in said and 'watch_up{resource="pods"} 1.0' in said


@pytest.fixture
def watched(cluster, node):
    """A node on which an agent enforces."""
    cluster.annotate(node, **told(time.time()))
    return node


def tried(cluster, node, running, to_fail):
    """Return what works."""
    works = set()

    def sees(what, condition):
        with suppress(AssertionError):
            wait_until(condition, what, IN_VAIN_S if what in to_fail else 20.0)
            works.add(what)

    sees(KNOWN, lambda: running.of(node)["rule"] == "contention")
    sees(COUNTED, lambda: running.fenced(node) == 2)
    sees(READY, running.is_ready)
    cluster.make(pod("late", node, cpu="2", priority_class="temper-critical"))
    sees(FOLLOWED, lambda: running.fenced(node) == 3)
    cluster.annotate(node, agent_mode="safe_mode")
    sees(HEARD, lambda: running.of(node)["rule"] == "not_enforcing")
    return works


@pytest.fixture(autouse=True)
def critical_class(cluster):
    cluster.make(
        {"kind": "PriorityClass", "metadata": {"name": "temper-critical"}, "value": 1_000_000}
    )


def test_no_right_is_given_that_is_not_listed_here():
    given = {(rule["resources"][0], verb) for rule in ROLE["rules"] for verb in rule["verbs"]}

    assert given == set(FAILS_WITHOUT)
    assert all(len(rule["resources"]) == 1 for rule in ROLE["rules"])


@pytest.mark.parametrize("right", [("", ""), *FAILS_WITHOUT], ids=" ".join)
def test_without_a_right_exactly_that_fails_which_needs_it(cluster, watched, account, right):
    fails = FAILS_WITHOUT.get(right, set())
    cluster.make(pod("early", watched, cpu="2", priority_class="temper-critical"))

    with Running(account(*right)) as running:
        works = tried(cluster, watched, running, fails)

    assert works == EVERYTHING - fails


def test_the_watches_survive_a_restart_of_the_api_server(cluster, watched, account):
    with Running(account()) as running:
        wait_until(lambda: running.of(watched)["rule"] == "contention", "the node")

        cluster.restart()
        known = running.of(watched)["rule"]
        cluster.make(pod("after", watched, cpu="2", priority_class="temper-critical"))
        cluster.annotate(watched, fenced_cores="5")

        assert known == "contention"
        wait_until(lambda: running.of(watched)["inputs"]["fenced_told"] == 5, "the node", 60)
        wait_until(lambda: running.of(watched)["inputs"]["fenced_asked"] == 1, "the pod", 60)
        wait_until(running.is_up, "both watches", 60)


def test_versions_that_the_server_forgot_are_listed_again(cluster, watched, account):
    with Running(account()) as running:
        wait_until(lambda: running.of(watched)["rule"] == "contention", "the node")

        cluster.restart("--stop")
        cluster.compact()
        cluster.restart("--start")
        cluster.annotate(watched, agent_mode="safe_mode")

        wait_until(lambda: running.of(watched)["rule"] == "not_enforcing", "the node", 60)
        wait_until(lambda: running.lists() >= 2, "another list")


def test_with_the_server_away_for_an_hour_answers_are_neutral_and_go_on(cluster, watched, account):
    with Running(account()) as running:
        wait_until(lambda: running.of(watched)["rule"] == "contention", "the node")
        wait_until(running.is_ready, "readiness")

        cluster.restart("--stop")
        try:
            at_once = running.of(watched)
            running.clock.ahead_s = OLD_AFTER_S + 30
            later = running.of(watched)
            running.clock.ahead_s = 3600
            after_an_hour = running.client.post(
                "/prioritize", json={"Pod": WANTED, "NodeNames": [watched]}
            )
            is_ready = running.is_ready()
        finally:
            cluster.restart("--start")

        assert (at_once["rule"], later["rule"], later["score"]) == ("contention", "old", 5)
        assert after_an_hour.json() == [{"host": watched, "score": 5}]
        assert is_ready
        running.clock.ahead_s = 0.0
        cluster.annotate(watched, agent_mode="safe_mode")
        wait_until(lambda: running.of(watched)["rule"] == "not_enforcing", "the node", 60)
