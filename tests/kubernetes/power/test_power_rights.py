"""Each right of the power operator is needed: without it the part that needs it is refused."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
import yaml
from attrs import evolve
from structlog.testing import capture_logs

from temper_core import MachineError
from temper_kube.api_server import ApiServer
from temper_plugin_power.controller.advice_writing import AdviceWriter
from temper_plugin_power.controller.classifier import Cluster
from temper_plugin_power.controller.collecting import Collector
from temper_plugin_power.controller.hardware_writing import HardwareWriter
from temper_plugin_power.controller.known_objects import KnownObjects
from temper_plugin_power.controller.kube_events import Events, Subject
from temper_plugin_power.controller.leading import Leader, LeaseName
from temper_plugin_power.controller.node_plans import plan_nodes
from temper_plugin_power.controller.owners import VERSIONS, find_owner
from temper_plugin_power.controller.pod_table import PodTable
from temper_plugin_power.controller.profile_writing import ProfileWriter
from temper_plugin_power.controller.rescheduling import Rescheduler
from temper_plugin_power.controller.stored_profiles import stored_profile
from temper_plugin_power.controller.twin_writing import TwinWriter
from temper_plugin_power.controller.twins import stored_twin
from temper_plugin_power.controller.watching import Scope, Watches
from temper_plugin_power.settings.operator import OperatorSettings, ReschedulerSettings
from temper_plugin_power.workloads.owners import Workload
from temper_plugin_power.workloads.profiling import WorkloadProfile
from tests.control_plane.cluster import access_by, unique, wait_until
from tests.kubernetes.power.conftest import GROUP, RIGHTS
from tests.power.made import a_profile
from tests.power.test_node_plans import a_node, a_pod, seen

DOCUMENTS = {each["kind"]: each for each in yaml.safe_load_all(RIGHTS.read_text())}
ROLE, LEASE_ROLE = DOCUMENTS["ClusterRole"], DOCUMENTS["Role"]
LEASE_GROUP = "coordination.k8s.io"
IN_VAIN_S = 3.0
"""How long a watch is given that may not begin."""


def one_resource_each(role):
    """Return *role* with a rule for each resource, so that each right can be left out."""
    rules = [
        {**rule, "resources": [resource], "verbs": list(rule["verbs"])}
        for rule in role["rules"]
        for resource in rule["resources"]
    ]
    together = {}
    for rule in rules:
        known = together.setdefault(rule["resources"][0], rule)
        known["verbs"] = list(dict.fromkeys((*known["verbs"], *rule["verbs"])))
    return {**role, "rules": list(together.values())}


def now():
    return datetime.now(UTC)


class Parts:
    """The parts of the operator, each with objects of its own, in the name of one account."""

    def __init__(self, access, cluster):
        self.access, self.cluster = access, cluster
        self.server = ApiServer(access)

    def watch(self, name, is_working):
        watches = Watches(Scope("", ("joulie.io",)), PodTable())
        watches.start(self.access)
        status = watches.statuses[name]
        with suppress(AssertionError):
            wait_until(lambda: is_working(status), name, IN_VAIN_S)
        failure = "" if is_working(status) else status.reason
        watches.close()
        if failure:
            raise MachineError(failure)

    def plan(self, *pods, **labels):
        node = evolve(a_node(unique("n"), **labels), uid=unique("uid"))
        made = self.cluster.make({"kind": "Node", "metadata": {"name": node.name}})
        node = evolve(node, uid=made["metadata"]["uid"])
        situation = evolve(seen(1, pods=pods, records={}), nodes=[node])
        return plan_nodes(situation, OperatorSettings()).nodes[0]

    def twins(self):
        plan = self.plan()
        writer = TwinWriter(self.server, now, lambda _: None, writes_labels=True)
        writer.write(plan, None)
        path = f"{GROUP}/nodetwins/{plan.node.name}"
        self.cluster.client.patch(
            path, json={"spec": {"profile": "eco"}}, headers={"Content-Type": MERGE}
        ).raise_for_status()
        old = evolve(stored_twin(self.cluster.call("GET", path)), version="1")
        writer.write(plan, old)

    def hardware(self):
        label = {"feature.node.kubernetes.io/cpu-model.name": "AMD EPYC 9654"}
        writer = HardwareWriter(self.server, now, lambda _: None, {})
        writer.write([self.plan(**label).node], {})

    def profile(self, name="gone", kind="Deployment"):
        """Write a profile, and return it as it is stored."""
        made = []
        writer = ProfileWriter(self.server, now, made.append)
        derived = WorkloadProfile(Workload("shop", kind, name), "", a_profile(), {"pods": 1})
        writer.write(derived, None, ())
        return writer, derived, stored_profile(made[-1])

    def profiles(self):
        name = unique("web")
        writer, derived, stored = self.profile(name)
        writer.place(stored, "n1")
        writer.write(evolve(derived, node="n2"), evolve(stored, version="1"), ())
        advice = AdviceWriter(self.server, lambda _: None)
        marked = evolve(stored, status={**stored.status, "rescheduleRecommended": True})
        advice.write((), [marked])

    def collecting(self):
        _, _, stored = self.profile(unique("gone"))
        profiles = KnownObjects(lambda _: stored)
        profiles.put({"metadata": {"namespace": "shop", "name": stored.name}})
        newest = self.cluster.call("GET", stored.path)
        profiles.replaced([newest])
        cluster = Cluster(PodTable(), KnownObjects(stored_profile), frozenset)
        cluster.profiles.replaced([newest])
        assert Collector(cluster, self.server).collect() == 1

    def owner(self, kind):
        find_owner(Workload("shop", kind, "gone"), self.server)

    def events(self):
        Events(self.server, "host").tell(Subject("v1", "Pod", "a", "shop", "1"), "Made", "made")

    def evicting(self, kind):
        name = unique("moves")
        options = {"reschedulable": "true", "workload_class": "performance"}
        plan = self.plan()
        pod = a_pod(name, plan.node.name, owner=kind, **options)
        step = evolve(plan.transition, is_draining=True)
        moved = evolve(plan, transition=step, blockers=(pod,), movable=(pod,))
        if kind == "StatefulSet":
            self.make_stateful_set(name)
        settings = ReschedulerSettings(enabled=True)
        events = Events(self.server, "host")
        mover = Rescheduler(self.server, settings, events, lambda *_: None)
        mover.move(evolve(plan_nodes(seen(0), OperatorSettings()), nodes=(moved,)))

    def leading(self):
        """Take a Lease that is not there, renew it, and give it back."""
        leader = Leader(self.server, LeaseName("temper", unique("lead"), "host"))
        leader.turn()
        leader.turn()
        leader.release()

    def make_stateful_set(self, name):
        labels = {"app": name}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]},
        }
        spec = {
            "replicas": 0,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": template,
        }
        path = "/apis/apps/v1/namespaces/shop/statefulsets"
        self.cluster.call("POST", path, {"metadata": {"name": name}, "spec": spec})


MERGE = "application/merge-patch+json"
WATCHED = {
    "nodes": "nodes",
    "pods": "pods",
    "workloadprofiles": "profiles",
    "nodetwins": "twins",
    "nodehardwares": "hardware",
}


def listing(name):
    return lambda parts: parts.watch(name, lambda status: status.has_listed.is_set())


def watching(name):
    return lambda parts: parts.watch(name, lambda status: status.is_up)


NEEDED_BY = {
    **{(resource, "list"): listing(name) for resource, name in WATCHED.items()},
    **{(resource, "watch"): watching(name) for resource, name in WATCHED.items()},
    **{
        (f"{kind.lower()}s", "get"): lambda parts, kind=kind: parts.owner(kind) for kind in VERSIONS
    },
    ("nodes", "patch"): Parts.twins,
    ("nodetwins", "get"): Parts.twins,
    ("nodetwins", "create"): Parts.twins,
    ("nodetwins", "patch"): Parts.twins,
    ("nodetwins/status", "patch"): Parts.twins,
    ("nodehardwares", "create"): Parts.hardware,
    ("nodehardwares/status", "patch"): Parts.hardware,
    ("workloadprofiles", "get"): Parts.profiles,
    ("workloadprofiles", "create"): Parts.profiles,
    ("workloadprofiles", "patch"): Parts.profiles,
    ("workloadprofiles/status", "patch"): Parts.profiles,
    ("workloadprofiles", "delete"): Parts.collecting,
    ("events", "create"): Parts.events,
    ("pods/eviction", "create"): lambda parts: parts.evicting("StatefulSet"),
    ("statefulsets", "patch"): lambda parts: parts.evicting("StatefulSet"),
    ("replicasets", "patch"): lambda parts: parts.evicting("ReplicaSet"),
    ("jobs", "patch"): lambda parts: parts.evicting("Job"),
}
"""What needs each right."""
LEASE_RIGHTS = ("get", "create", "update")
"""The rights of the Role, on Leases of the operator's own namespace."""


@pytest.fixture
def parts_of(cluster, tmp_path):
    """The parts of an operator whose account has the rights of the role but one."""
    made = []

    def make(resource="", verb=""):
        account = cluster.account_with_all_but(one_resource_each(ROLE), resource, verb)
        token = tmp_path / account
        token.write_text(cluster.token(account))
        parts = Parts(access_by(cluster.url, token, cluster.ca), cluster)
        made.append(parts)
        wait_until(
            lambda: (
                not refusals(lambda each: each.owner("CronJob"), parts)
                or ((resource, verb) == ("cronjobs", "get"))
            ),
            "the role counts",
        )
        return parts

    yield make
    for parts in made:
        parts.server.__exit__(None, None, None)


@pytest.fixture
def leader_of(cluster, tmp_path):
    """The parts of an operator whose account has the rights of the Role but one."""
    made = []

    def make(verb=""):
        account = cluster.account_with_all_but(LEASE_ROLE, "leases" if verb else "", verb)
        token = tmp_path / account
        token.write_text(cluster.token(account))
        kept = [each for each in LEASE_RIGHTS if each != verb]
        wait_until(
            lambda: all(cluster.may(account, each, "leases", LEASE_GROUP) for each in kept),
            "the role counts",
        )
        made.append(Parts(access_by(cluster.url, token, cluster.ca), cluster))
        return account, made[-1]

    yield make
    for parts in made:
        parts.server.__exit__(None, None, None)


def refusals(action, parts):
    """Return what the API server refuses to an action for a missing right."""
    told = []
    with capture_logs() as logs:
        try:
            action(parts)
        except (MachineError, AssertionError) as error:
            told.append(str(error))
    told += [str(each.get("reason", "")) for each in logs]
    return [text for text in told if "lacks the right to" in text or "cannot" in text]


def test_no_right_is_given_that_nothing_here_needs():
    given = {
        (rule["resources"][0], verb)
        for rule in one_resource_each(ROLE)["rules"]
        for verb in rule["verbs"]
    }

    assert given == set(NEEDED_BY)


def test_with_all_rights_nothing_is_refused(parts_of):
    parts = parts_of()

    refused = {right: refusals(action, parts) for right, action in NEEDED_BY.items()}

    assert {right: told for right, told in refused.items() if told} == {}


@pytest.mark.parametrize("right", NEEDED_BY, ids=" ".join)
def test_without_a_right_what_needs_it_is_refused(parts_of, right):
    resource, verb = right
    told = refusals(NEEDED_BY[right], parts_of(resource, verb))

    # A client's words, and those of the API server in the state of a watch.
    words = (f"lacks the right to {verb} {resource}", f'cannot {verb} resource "{resource}"')
    assert any(each in text for text in told for each in words), told


def test_the_role_gives_rights_on_leases_of_its_own_namespace_only(cluster, leader_of):
    account, _ = leader_of()

    assert LEASE_ROLE["rules"] == [
        {"apiGroups": [LEASE_GROUP], "resources": ["leases"], "verbs": list(LEASE_RIGHTS)}
    ]
    for verb in LEASE_RIGHTS:
        assert cluster.may(account, verb, "leases", LEASE_GROUP)
        assert not cluster.may(account, verb, "leases", LEASE_GROUP, "kube-system")


def test_with_all_rights_of_the_role_a_lease_is_taken_renewed_and_given_back(leader_of):
    _, parts = leader_of()

    assert refusals(Parts.leading, parts) == []


@pytest.mark.parametrize("verb", LEASE_RIGHTS)
def test_without_a_right_of_the_role_no_lease_is_held(leader_of, verb):
    _, parts = leader_of(verb)

    told = refusals(Parts.leading, parts)

    assert any(f"lacks the right to {verb} leases" in text for text in told), told
