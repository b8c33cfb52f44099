"""The rights in ``rbac.yaml`` are enough, and each is needed: without it something named fails."""

from contextlib import closing, suppress

import pytest
from attrs import evolve

from temper_core import Mode, Status
from temper_core.testing import MadeContext, make_snapshot
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.instrument import ClusterInstrument
from temper_plugin_kubernetes.options import Options
from tests.control_plane.cluster import RBAC, access_by, pod, wait_until

STATUS = "temper.codes/agent-status"
IN_SAFE_MODE = make_snapshot(status=Status(Mode.SAFE_MODE, "ejected", "thrown out"))
ROLE = next(document for document in RBAC if document["kind"] == "ClusterRole")
KNOWN, HEARD = "the pods are known", "a new pod is heard of"
AT_START, SWITCH = "the kill switch is seen at start", "the kill switch is heard"
WRITTEN = "the annotations are written"
MADE, AGAIN = "an event is made", "an event is brought up to date"
EVERYTHING = {KNOWN, HEARD, AT_START, SWITCH, WRITTEN, MADE, AGAIN}
FAILS_WITHOUT = {
    ("pods", "list"): {KNOWN, HEARD},
    ("pods", "watch"): {HEARD},
    ("nodes", "list"): {AT_START, SWITCH, WRITTEN},
    ("nodes", "watch"): {SWITCH},
    ("nodes", "patch"): {WRITTEN},
    ("events", "create"): {MADE, AGAIN},
    ("events", "patch"): {AGAIN},
}
IN_VAIN_S = 2.0
"""How long to wait for what is to fail."""


@pytest.fixture
def agent_of(cluster, tmp_path):
    """An account with the agent's rights but one, and the way to the API server in its name."""

    def make(resource="", verb=""):
        name = cluster.account_with_all_but(ROLE, resource, verb)
        token = tmp_path / name
        token.write_text(cluster.token(name))
        return access_by(cluster.url, token, cluster.ca)

    return make


class Trial:
    """What comes of a source and a instrument that work on one node."""

    def __init__(self, cluster, node, to_fail):
        self.cluster, self.node, self.to_fail = cluster, node, to_fail
        self.works = set()
        self.wishes = []

    def sees(self, what, condition):
        """Note that *what* works as soon as *condition* is true."""
        with suppress(AssertionError):
            wait_until(condition, what, IN_VAIN_S if what in self.to_fail else 20.0)
            self.works.add(what)

    def of_the_pods(self, watched):
        self.cluster.run(pod("early", self.node))
        self.sees(KNOWN, lambda: "early" in watched.names())
        self.cluster.run(pod("late", self.node))
        self.sees(HEARD, lambda: "late" in watched.names())

    def of_the_node(self, accompany):
        context = MadeContext(self.node, self.wishes.append, lambda: self.wishes.append("released"))
        self.cluster.annotate(self.node, safe_mode_requested="true")
        with closing(accompany(context)) as instrument:
            self.sees(AT_START, lambda: self.wishes)
            self.cluster.annotate(self.node, safe_mode_requested=None)
            self.sees(SWITCH, lambda: self.wishes[-1:] == ["released"])
            instrument.tell(IN_SAFE_MODE)
            self.sees(WRITTEN, lambda: STATUS in self.cluster.annotations(self.node))
            self.sees(MADE, self.told)
        with closing(accompany(context)) as instrument:
            instrument.tell(
                evolve(IN_SAFE_MODE, status=evolve(IN_SAFE_MODE.status, detail="again"))
            )
            self.sees(AGAIN, lambda: self.told() == ["safe mode (ejected): again"])

    def told(self):
        return [event["message"] for event in self.cluster.events(self.node)]


@pytest.fixture
def trial(cluster, node, agent_of, watch):
    """Try everything, as the agent would, with all rights but one."""

    def run(right=(), to_fail=()):
        access = agent_of(*right)
        options = Options(node=node, write_every_s=0.1)
        trial = Trial(cluster, node, to_fail)
        trial.of_the_pods(watch(access, node))
        trial.of_the_node(lambda context: ClusterInstrument(context, access, options, Account()))
        return trial.works

    return run


def test_no_right_is_given_that_is_not_listed_here():
    given = {(rule["resources"][0], verb) for rule in ROLE["rules"] for verb in rule["verbs"]}

    assert given == set(FAILS_WITHOUT)
    assert all(len(rule["resources"]) == 1 for rule in ROLE["rules"])


def test_with_all_rights_all_works(trial):
    assert trial() == EVERYTHING


@pytest.mark.parametrize("right", FAILS_WITHOUT, ids=" ".join)
def test_without_a_right_exactly_that_fails_which_needs_it(trial, right):
    fails = FAILS_WITHOUT[right]

    assert trial(right, fails) == EVERYTHING - fails
