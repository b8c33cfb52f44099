"""The thread that writes to the cluster, where it fails by a fault of its own."""

import pytest
from structlog.testing import capture_logs

from temper_core import Assignment, LayerPlan, Mode, Note, Restored, Status, Tier
from temper_core.testing import MadeContext, make_machine, make_pod, make_snapshot
from temper_kube.access import Access
from temper_kube.failures import RefusalError
from temper_plugin_kubernetes.accounts import WRITES, Account
from temper_plugin_kubernetes.annotation_requests import RESTORE, AnnotationRequests
from temper_plugin_kubernetes.annotations import FORMER, RESTORED
from temper_plugin_kubernetes.node import NodeState
from temper_plugin_kubernetes.options import Options
from temper_plugin_kubernetes.writing import Writer, is_of_one_object
from tests.control_plane.cluster import unique, wait_until

NOWHERE = Access("127.0.0.1", 1, is_tls=False)


class Broken:
    """What a watch keeps, with a bug in it."""

    def __init__(self):
        self.asked = 0

    def __call__(self):
        self.asked += 1
        raise ZeroDivisionError


def failures(account):
    written = next(each for each in account.metrics() if each.name == WRITES)
    return {sample.labels["write"]: sample.value for sample in written.samples}.get("turn_failed")


def test_a_fault_of_its_own_is_counted_and_told_and_does_not_end_it():
    account, node = Account(), Broken()
    wishes = AnnotationRequests(MadeContext("one", print, print))
    writer = Writer(NOWHERE, Options(node="one", write_every_s=0.05), account, node, wishes)

    with capture_logs() as logs:
        writer.start()
        writer.tell(make_snapshot())
        wait_until(lambda: node.asked > 0 and failures(account), "a failure")
        asked = node.asked
        wait_until(lambda: writer.look() or node.asked > asked, "another turn")
        writer.close()

    assert {entry["event"] for entry in logs} >= {"cluster_writer_failed"}


@pytest.mark.parametrize("is_beside", [True, False])
def test_beside_an_agent_that_may_enforce_nothing_is_written(monkeypatch, is_beside):
    patches = []
    monkeypatch.setattr(Writer, "_patch_node", lambda _self, patch, *_: patches.append(patch))
    context = MadeContext(
        "one", on_restore=lambda _, done: done(Restored()), has_neighbour=is_beside
    )
    wishes = AnnotationRequests(context)
    annotations = {RESTORE: "now", "temper.codes/agent-mode": "enforcing"}
    wishes.obey(NodeState("u", annotations))
    options = Options(node="one", write_every_s=0.05, events=False)
    writer = Writer(NOWHERE, options, Account(), lambda: NodeState("u", annotations), wishes)

    writer.start()
    writer.tell(make_snapshot())
    if not is_beside:
        wait_until(lambda: len(patches) > 1, "the answer and the annotations")
    writer.close()

    assert bool(patches) is not is_beside


def test_former_requests_are_named_and_removed_with_the_other_answers(monkeypatch):
    annotations, patches = {RESTORED: "x", FORMER: "stale"}, []
    monkeypatch.setattr(Writer, "_patch_node", lambda _self, patch, *_: patches.append(patch))
    wishes = AnnotationRequests(MadeContext())
    wishes.obey(NodeState("a", {RESTORE: "now"}))
    wishes.obey(NodeState("b", annotations))
    options = Options(node="one", write_every_s=0.05, annotations=False, events=False)
    writer = Writer(NOWHERE, options, Account(), lambda: NodeState("b", annotations), wishes)

    writer.start()
    writer.look()
    wait_until(lambda: patches, "the answer")
    writer.close()

    assert patches[0] == {RESTORED: None, FORMER: RESTORE}
    assert patches[-1] == {RESTORED: None, FORMER: None}


def terminating_namespace(cluster):
    """Return a namespace that stays in deletion, because an object in it has a finalizer."""
    name = unique("ending")
    cluster.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    kept = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kept", "namespace": name, "finalizers": ["example.org/kept"]},
    }
    cluster.make(kept)
    cluster.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name, kept


def not_applied(*pods):
    """Return an observation in which no profile of *pods* is applied."""
    assignments = tuple(Assignment(pod, Tier.HIGH, "test") for pod in pods)
    notes = tuple(Note("profile_not_applied", pod.key, "64 cores do not fit") for pod in pods)
    plan = LayerPlan(make_machine(), (), assignments, notes)
    return make_snapshot(plan=plan, status=Status(Mode.ENFORCING, generation=1))


def test_a_namespace_that_terminates_keeps_no_event_of_others_from_being_written(cluster, access):
    ending, kept = terminating_namespace(cluster)
    account, name = Account(), unique("told")
    options = Options(node=name, write_every_s=0.2, annotations=False)
    wishes = AnnotationRequests(MadeContext(name, print, print))
    writer = Writer(access, options, account, lambda: NodeState(uid="u"), wishes)

    writer.start()
    writer.tell(not_applied(make_pod("first", ending), make_pod(name, "default")))
    wait_until(lambda: cluster.events(name), "the event of the other pod")
    writer.close()
    cluster.patch(kept, {"metadata": {"finalizers": None}})

    reasons = {event["reason"] for event in cluster.events(name)}
    assert "ProfileNotApplied" in reasons
    samples = next(each for each in account.metrics() if each.name == WRITES).samples
    assert {sample.labels["write"]: sample.value for sample in samples}["events_failed"] == 1


@pytest.mark.parametrize(
    ("status", "is_dropped"),
    [(401, False), (403, True), (422, True), (429, False), (500, False), (503, False)],
)
def test_only_what_a_refusal_says_of_one_object_is_dropped(status, is_dropped):
    assert is_of_one_object(RefusalError(status, "odd")) is is_dropped
