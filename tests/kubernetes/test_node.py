"""The instrument against a real API server: kill switch, annotations, events."""

import pytest
from attrs import evolve, frozen
from structlog.testing import capture_logs

from temper_core import Assignment, LayerPlan, Mode, Note, Status, Tier
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.testing import MadeContext, make_machine, make_pod, make_snapshot
from temper_kube.access import Access
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.instrument import ClusterInstrument
from temper_plugin_kubernetes.node import NodeState, NodeWatch
from temper_plugin_kubernetes.options import Options
from tests.control_plane.cluster import pod, unique, wait_until

NOWHERE = Access("127.0.0.1", 9, is_tls=False)
SWITCH_S = 1.0
"""Within so many seconds the kill switch is to be honoured."""


@pytest.fixture
def requests(tmp_path):
    """The agent's own memory of who asks for safe mode."""
    return SafeModeRequests(tmp_path / "safe-mode", tmp_path / "requests.json")


def reason_of(requests):
    request = requests.active().get("kubernetes")
    return request.reason if request else ""


@frozen
class Opened:
    instrument: ClusterInstrument
    account: Account

    def tell(self, snapshot):
        self.instrument.tell(snapshot)

    def writes(self, what="annotations"):
        samples = next(each for each in self.account.metrics() if "writes" in each.name).samples
        return {each.labels["write"]: each.value for each in samples}.get(what, 0)

    def is_watched(self):
        samples = next(each for each in self.account.metrics() if "watch_up" in each.name).samples
        return any(each.value for each in samples)


@pytest.fixture
def accompany(requests):
    opened = []

    def begin(access, node, **options):
        context = MadeContext(
            node,
            lambda reason: requests.add("kubernetes", reason),
            lambda: requests.withdraw("kubernetes"),
            standing_reason=reason_of(requests),
        )
        given = evolve(Options(node=node, write_every_s=0.2), **options)
        account = Account()
        opened.append(ClusterInstrument(context, access, given, account))
        return Opened(opened[-1], account)

    yield begin
    for instrument in opened:
        instrument.close()


def seen(*assigned, **changes):
    assignments = tuple(Assignment(each, tier, "test") for each, tier in assigned)
    plan = LayerPlan(make_machine(), (), assignments, changes.pop("notes", ()))
    return make_snapshot(plan=plan, **changes)


def written(cluster, node, key, value):
    return wait_until(
        lambda: cluster.annotations(node).get(f"temper.codes/{key}") == value, f"{key}={value}"
    )


def test_the_annotation_asks_for_safe_mode_within_a_second(
    cluster, node, access, accompany, requests
):
    accompany(access, node)

    cluster.annotate(node, safe_mode_requested="true")

    wait_until(requests.active, "the request", SWITCH_S)
    reason = requests.active()["kubernetes"].reason
    uid = cluster.get("Node", node)["metadata"]["uid"]
    assert reason == (
        f"the node annotation temper.codes/safe-mode-requested=true is set (Node {uid})"
    )


@pytest.mark.parametrize("released", [None, "false", ""])
def test_taking_the_annotation_away_releases_it(
    cluster, node, access, accompany, requests, released
):
    cluster.annotate(node, safe_mode_requested="true")
    accompany(access, node)
    assert requests.active()

    cluster.annotate(node, safe_mode_requested=released)

    wait_until(lambda: not requests.active(), "the release", SWITCH_S)


def test_an_annotation_that_is_there_already_asks_before_opening_is_over(
    cluster, node, access, accompany, requests
):
    cluster.annotate(node, safe_mode_requested="true")

    accompany(access, node)

    assert "kubernetes" in requests.active()


def test_what_was_asked_for_stands_while_no_server_answers(accompany, requests):
    requests.add("kubernetes", "from before")

    with capture_logs() as logs:
        accompany(NOWHERE, "node-1")

    assert [entry["event"] for entry in logs] == ["kill_switch_not_known"]
    assert requests.active()["kubernetes"].reason == "from before"


def test_a_request_that_was_withdrawn_while_no_agent_ran_is_released(
    node, access, accompany, requests
):
    requests.add("kubernetes", "from before")

    accompany(access, node)

    assert requests.active() == {}


def test_a_node_that_is_registered_anew_withdraws_nothing_until_it_says_so(
    cluster, node, access, accompany, requests
):
    accompany(access, node)
    cluster.annotate(node, safe_mode_requested="incident")
    wait_until(requests.active, "the request")

    cluster.without_node(node)
    cluster.node(node)
    wait_until(lambda: "former" in reason_of(requests), "the new object")
    accompany(access, node)  # as after a restart
    stands = reason_of(requests)
    written(cluster, node, "agent-former-requests", "temper.codes/safe-mode-requested")
    cluster.annotate(node, safe_mode_requested="false")

    assert stands.startswith(
        "the node annotation temper.codes/safe-mode-requested=incident was set on a former Node "
        "object; annotate this one with temper.codes/safe-mode-requested=false to withdraw it"
    )
    wait_until(lambda: not requests.active(), "the release")
    key = "temper.codes/agent-former-requests"
    wait_until(lambda: key not in cluster.annotations(node), "its removal")


def test_a_node_that_is_not_in_the_cluster_is_a_defect_until_it_is(
    cluster, access, accompany, requests
):
    name = unique("unregistered")
    opened = accompany(access, name, stale_after_s=0.0)
    wait_until(opened.is_watched, "the watch")
    instrument = opened.instrument
    (defect,) = wait_until(instrument.defects, "the defect")

    cluster.node(name)
    wait_until(lambda: not instrument.defects(), "the node")
    cluster.annotate(name, safe_mode_requested="true")
    wait_until(requests.active, "the request")
    cluster.without_node(name)
    again = wait_until(instrument.defects, "the defect after the deletion")

    assert defect == (
        f"the cluster has no node {name!r}, so neither the kill switch by annotation nor pods are "
        "heard; `node` in [plugins.kubernetes] names it"
    )
    assert again == (defect,)
    assert "kubernetes" in requests.active()


def test_a_node_that_is_not_there_yet_has_as_long_as_a_watch_that_is_down(access, accompany):
    opened = accompany(access, unique("unregistered"), stale_after_s=1000.0)

    wait_until(opened.is_watched, "the watch")

    assert opened.instrument.defects() == ()


def test_of_a_node_that_is_not_there_a_watch_that_is_down_is_told(access, way, accompany):
    opened = accompany(access, unique("unregistered"), stale_after_s=0.0)
    wait_until(opened.is_watched, "the watch")

    way.cut()
    wait_until(lambda: not opened.is_watched(), "the end of the watch")
    (defect,) = wait_until(opened.instrument.defects, "the defect")

    assert defect.startswith("the node's annotations are not heard, nor the kill switch")


def test_requests_of_others_are_left_alone(cluster, node, access, accompany, requests):
    requests.add("an operator", "looks at it")
    cluster.annotate(node, safe_mode_requested="true")
    accompany(access, node)

    cluster.annotate(node, safe_mode_requested=None)

    wait_until(lambda: "kubernetes" not in requests.active(), "the release")
    assert set(requests.active()) == {"an operator"}


def test_another_nodes_annotation_is_not_heard(
    cluster, node, other_node, access, accompany, requests
):
    accompany(access, node)

    cluster.annotate(other_node, safe_mode_requested="true")
    cluster.annotate(node, something_else="written later")
    written(cluster, node, "something-else", "written later")

    assert requests.active() == {}


def test_the_switch_works_again_after_the_server_was_away(
    cluster, node, access, way, accompany, requests
):
    accompany(access, node)
    way.cut()
    cluster.annotate(node, safe_mode_requested="true")
    way.mend()

    wait_until(requests.active, "the request", 10)


def test_the_annotations_say_how_the_node_fares_and_go_with_the_agent(
    cluster, node, access, accompany
):
    cluster.annotate(node, safe_mode_requested="false")
    db = make_pod("db", "shop", cpu_request_millis=1500)
    opened = accompany(access, node)

    opened.tell(seen((db, Tier.CRITICAL), (make_pod(), Tier.LOW)))
    written(cluster, node, "agent-status", "enforcing")
    said = cluster.annotations(node)
    opened.instrument.close()

    assert said["temper.codes/tier-critical-pods"] == "1"
    assert said["temper.codes/tier-critical-cpu-millis"] == "1500"
    assert said["temper.codes/tier-low-pods"] == "1"
    assert said["temper.codes/config-generation"] == "1"
    assert said["temper.codes/tiers-updated"] == "2025-06-15T15:06:40Z"
    assert cluster.annotations(node) == {"temper.codes/safe-mode-requested": "false"}


def test_what_has_not_changed_is_not_written(cluster, node, access, accompany):
    opened = accompany(access, node)
    opened.tell(seen((make_pod(), Tier.LOW)))
    written(cluster, node, "agent-status", "enforcing")
    version = cluster.get("Node", node)["metadata"]["resourceVersion"]

    for number in range(5):
        opened.tell(seen((make_pod(), Tier.LOW), at=1_750_000_000.0 + number))
    opened.tell(seen((make_pod(), Tier.LOW), status=Status(Mode.SAFE_MODE, "requested", "op")))
    written(cluster, node, "agent-status", "safe_mode:requested")

    wait_until(lambda: opened.writes() == 2, "both writes counted")
    assert version != cluster.get("Node", node)["metadata"]["resourceVersion"]


def test_changes_are_written_no_more_often_than_the_settings_say(cluster, node, access, accompany):
    opened = accompany(access, node, write_every_s=1000.0)
    opened.tell(seen((make_pod(), Tier.LOW)))
    written(cluster, node, "tier-low-pods", "1")

    for count in range(2, 6):
        opened.tell(seen(*[(make_pod(f"p{n}"), Tier.LOW) for n in range(count)]))
    cluster.annotate(node, something_else="wakes the writer")
    written(cluster, node, "something-else", "wakes the writer")

    assert cluster.annotations(node)["temper.codes/tier-low-pods"] == "1"
    wait_until(lambda: opened.writes() == 1, "one write counted")


def test_an_annotation_that_somebody_else_took_away_is_written_again(
    cluster, node, access, accompany
):
    opened = accompany(access, node)
    opened.tell(seen((make_pod(), Tier.LOW)))
    written(cluster, node, "agent-status", "enforcing")

    cluster.annotate(node, agent_status=None)

    written(cluster, node, "agent-status", "enforcing")


def test_what_could_not_be_written_is_written_when_the_server_is_back(
    cluster, node, access, way, accompany
):
    opened = accompany(access, node)
    opened.tell(seen((make_pod(), Tier.LOW)))
    written(cluster, node, "agent-status", "enforcing")

    way.cut()
    opened.tell(seen((make_pod(), Tier.LOW), status=Status(Mode.SAFE_MODE, "ejected", "stall")))
    wait_until(lambda: opened.writes("annotations_failed"), "a failure")
    way.mend()

    written(cluster, node, "agent-status", "safe_mode:ejected")


def test_safe_mode_is_an_event_of_the_node(cluster, node, access, accompany):
    opened = accompany(access, node)

    opened.tell(seen(status=Status(Mode.SAFE_MODE, "ejected", "the kernel threw it out")))
    (event,) = wait_until(lambda: cluster.events(node), "the event")

    assert (event["reason"], event["type"]) == ("SafeMode", "Warning")
    assert event["message"] == "safe mode (ejected): the kernel threw it out"
    assert event["involvedObject"]["uid"] == cluster.get("Node", node)["metadata"]["uid"]
    assert event["source"] == {"component": "temper-agent", "host": node}


def test_a_profile_that_is_not_applied_is_an_event_of_the_pod(cluster, node, access, accompany):
    made = cluster.run(pod("db", node, "shop"))
    record = make_pod("db", "shop", uid=made["metadata"]["uid"])
    note = Note("profile_not_applied", "shop/db", "no profile is called 'mysq'")
    opened = accompany(access, node)

    for _ in range(3):
        opened.tell(seen((record, Tier.HIGH), notes=(note,)))
    (event,) = wait_until(lambda: cluster.events("db", "shop"), "the event")
    cluster.delete(made)

    assert (event["reason"], event["count"]) == ("ProfileNotApplied", 1)
    assert event["message"] == "no profile is called 'mysq'"


def test_another_agent_that_tells_the_same_story_makes_no_second_event(
    cluster, node, access, accompany
):
    status = Status(Mode.SAFE_MODE, "ejected", "the first time")
    accompany(access, node).tell(seen(status=status))
    wait_until(lambda: cluster.events(node), "the event")

    accompany(access, node).tell(seen(status=evolve(status, detail="the second time")))

    wait_until(
        lambda: (
            [e["message"] for e in cluster.events(node)] == ["safe mode (ejected): the second time"]
        ),
        "the event brought up to date",
    )


@pytest.mark.parametrize("off", ["annotations", "events"])
def test_either_can_be_switched_off(cluster, node, access, accompany, off):
    opened = accompany(access, node, **{off: False})

    opened.tell(seen(status=Status(Mode.SAFE_MODE, "ejected", "thrown out")))
    other = "events" if off == "annotations" else "annotations"
    wait_until(lambda: opened.writes(other), "the other")

    assert bool(cluster.events(node)) is (off != "events")
    assert bool(cluster.annotations(node)) is (off != "annotations")


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


OWN, OTHER = {"metadata": {"name": "n"}}, {"metadata": {"name": "other"}}


def test_the_absence_lasts_from_the_first_list_without_the_node():
    clock = Clock()
    watch = NodeWatch("n", lambda _state: None, clock=clock)
    before = watch.absent_s

    with capture_logs() as logs:
        for items in ([], [OTHER], []):
            watch.replaced(items)
            clock.now += 5.0
        absent = watch.absent_s
        watch.changed("ADDED", OTHER)
        beside_another = watch.absent_s
        watch.changed("ADDED", OWN)

    assert (before, absent, beside_another, watch.absent_s) == (0.0, 15.0, 15.0, 0.0)
    assert [entry["event"] for entry in logs] == ["node_not_found", "node_found"]


def test_the_absence_lasts_from_the_deletion_of_the_node():
    clock = Clock()
    watch = NodeWatch("n", lambda _state: None, clock=clock)
    watch.replaced([OWN])

    with capture_logs() as logs:
        watch.changed("DELETED", OTHER)
        watch.changed("DELETED", OWN)
        clock.now += 7.0
        absent = watch.absent_s
        watch.replaced([OWN])

    assert (absent, watch.absent_s) == (7.0, 0.0)
    assert [entry["event"] for entry in logs] == ["node_not_found", "node_found"]


@pytest.mark.parametrize("annotations", ["all", [1], {"temper.codes/safe-mode-requested": 5}])
def test_a_node_that_cannot_be_read_changes_nothing(annotations):
    obeyed = []
    watch = NodeWatch("n", obeyed.append)
    watch.replaced([{"metadata": {"name": "n", "uid": "1", "annotations": {"a": "b"}}}])

    with capture_logs() as logs:
        watch.changed("MODIFIED", {"metadata": {"name": "n", "annotations": annotations}})

    assert obeyed == [NodeState("1", {"a": "b"})]
    assert watch.now().annotations == {"a": "b"}
    assert [entry["event"] for entry in logs] == ["node_unreadable"]
