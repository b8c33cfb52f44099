"""The rights in ``rbac.yaml`` are enough, and each is needed: without it something named fails."""

import copy

import pytest
from attrs import evolve

from temper_core import CompanionContext, Mode, Status
from temper_core.testing import make_snapshot
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.companion import ClusterCompanion
from temper_plugin_kubernetes.options import Options
from tests.kubernetes.cluster import RBAC, access_by, pod, unique, wait_until

ROLE = next(document for document in RBAC if document["kind"] == "ClusterRole")
EVERY_RIGHT = {
    ("pods", "list"): "the pods are known",
    ("pods", "watch"): "a new pod is heard of",
    ("nodes", "list"): "the kill switch is seen at start",
    ("nodes", "watch"): "the kill switch is heard",
    ("nodes", "patch"): "the annotations are written",
    ("events", "create"): "an event is made",
    ("events", "patch"): "an event is brought up to date",
}
PATIENCE_S = 4.0


@pytest.fixture
def agent_of(cluster, tmp_path):
    """An account with the agent's rights but one, and the way to the API server in its name."""

    def make(resource="", verb=""):
        name = unique("agent")
        role = copy.deepcopy(ROLE)
        role["metadata"]["name"] = name
        for rule in role["rules"]:
            if rule["resources"] == [resource]:
                rule["verbs"].remove(verb)
        role["rules"] = [rule for rule in role["rules"] if rule["verbs"]]
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "temper"}
        binding = {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {**RBAC[2]["roleRef"], "name": name},
            "subjects": [subject],
        }
        account = {"kind": "ServiceAccount", "metadata": {"name": name, "namespace": "temper"}}
        for document in (account, role, binding):
            cluster.make(document)
        token = tmp_path / name
        token.write_text(cluster.token(name))
        return access_by(cluster.url, token, cluster.ca)

    return make


class Cause:
    """One node, and what comes of a source and a companion that work on it."""

    def __init__(self, cluster, node, access, watch):
        self.cluster, self.node = cluster, node
        self.wishes = []
        self.watched = watch(access, node)
        context = CompanionContext(node, self.wishes.append, lambda: self.wishes.append(""))
        self.options = Options(node=node, write_every_s=0.1)
        self.open = lambda: ClusterCompanion(context, access, self.options, Account())

    def works(self):
        """Return everything that works, in words."""
        self.cluster.make(pod("early", self.node))
        found = {"the pods are known"} & self.if_so(lambda: "early" in self.watched.names())
        self.cluster.make(pod("late", self.node))
        found |= self.if_so(lambda: "late" in self.watched.names(), "a new pod is heard of")
        return found | self.of_the_node()

    def of_the_node(self):
        self.cluster.annotate(self.node, safe_mode_requested="true")
        companion = self.open()
        try:
            found = self.if_so(lambda: self.wishes[:1], "the kill switch is seen at start")
            self.cluster.annotate(self.node, safe_mode_requested=None)
            found |= self.if_so(lambda: self.wishes[-1:] == [""], "the kill switch is heard")
            return found | self.told(companion)
        finally:
            companion.close()

    def told(self, companion):
        status = Status(Mode.SAFE_MODE, "ejected", "first")
        companion.tell(make_snapshot(status=status))
        key = "temper.codes/agent-status"
        found = self.if_so(
            lambda: key in self.cluster.annotations(self.node), "the annotations are written"
        )
        found |= self.if_so(lambda: self.cluster.events(self.node), "an event is made")
        again = self.open()
        again.tell(make_snapshot(status=evolve(status, detail="second")))
        told = "safe mode (ejected): second"
        found |= self.if_so(
            lambda: [each["message"] for each in self.cluster.events(self.node)] == [told],
            "an event is brought up to date",
        )
        again.close()
        return found

    @staticmethod
    def if_so(condition, what="the pods are known"):
        try:
            wait_until(condition, what, PATIENCE_S)
        except AssertionError:
            return set()
        return {what}


def test_no_right_is_given_that_is_not_listed_here():
    given = {(rule["resources"][0], verb) for rule in ROLE["rules"] for verb in rule["verbs"]}

    assert given == set(EVERY_RIGHT)
    assert all(len(rule["resources"]) == 1 for rule in ROLE["rules"])


def test_with_all_rights_all_works(cluster, node, agent_of, watch):
    assert Cause(cluster, node, agent_of(), watch).works() == set(EVERY_RIGHT.values())


@pytest.mark.parametrize(("resource", "verb"), EVERY_RIGHT)
def test_without_a_right_that_fails_which_needs_it(cluster, node, agent_of, watch, resource, verb):
    works = Cause(cluster, node, agent_of(resource, verb), watch).works()

    assert EVERY_RIGHT[resource, verb] not in works
    unharmed = {what for (other, _), what in EVERY_RIGHT.items() if other != resource}
    if (resource, verb) != ("nodes", "list"):  # without its node nothing is known to tell of
        assert unharmed <= works
