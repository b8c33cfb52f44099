"""Who is who: pods of the API server and cgroups of the host."""

from types import SimpleNamespace

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from temper_core import Container, Origin, Pod
from temper_core.testing import make_pod
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.joining import join
from temper_plugin_kubernetes.listing import Listed, Listing

ID = "0123456789abcdef" * 4
STATIC = "5b1f" * 8
VICTIM = "0a1b2c3d-0000-4000-8000-00000000000f"


def local(uid, **changes):
    """What the cgroup tree alone tells of a pod."""
    pod = Pod(uid, "", f"pod-{uid[:8]}", cgroups=(f"kubepods/pod{uid}/",))
    return evolve(pod, **changes)


def item(uid, name="web", annotations=None, **changes):
    metadata = {"name": name, "uid": uid, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "app"}], **changes}}


@pytest.fixture
def listing():
    return Listing(Account())


def test_the_processes_that_the_host_shows_are_those_of_the_container_with_that_id():
    listed = make_pod(containers=(Container("app", "mysql:8", runtime_id=ID), Container("side")))
    found = local(listed.uid, containers=(Container("", runtime_id=ID, processes=("mysqld",)),))

    (joined,) = join(Listed((listed,)), [found])

    assert joined.containers == (
        Container("app", "mysql:8", runtime_id=ID, processes=("mysqld",)),
        Container("side"),
    )
    assert joined.cgroups == found.cgroups
    assert joined.name == listed.name


def test_a_deleted_pod_is_one_for_as_long_as_a_container_of_it_is_left():
    left = local("left", containers=(Container("", runtime_id=ID),))
    empty, new = local("empty"), local("new")

    joined = join(Listed(), [left, empty, new], deleted={"left", "empty"})

    assert joined == (left, new)


def test_what_is_no_pod_of_kubernetes_stays_what_it_is():
    run = local("run:batch", origin=Origin.WORKLOAD)

    assert join(Listed(), [run]) == (run,)


def test_pods_that_have_ended_and_those_that_vanished_are_left_out():
    one, other = make_pod("one"), make_pod("other")
    ended = local("ended")

    joined = join(Listed((one, other), frozenset({"ended"})), [ended], {other.uid})

    assert joined == (one,)


def test_a_pod_that_is_being_deleted_keeps_its_tier_and_asks_for_nothing_while_it_runs(listing):
    leaving = item("uid-db", "db", priority=1_000_000)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    leaving["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}}
    listing.replaced([leaving])

    (running,) = join(listing.now(), [local("uid-db")])
    without_cgroup = join(listing.now(), [])

    assert (running.name, running.priority) == ("db", 1_000_000)
    assert (running.cpu_request_millis, running.cpu_limit_millis) == (0, 0)
    assert running.cgroups == ("kubepods/poduid-db/",)
    assert without_cgroup == ()


def test_a_pod_that_the_kubelet_has_not_accepted_counts_from_its_cgroup_on(listing):
    refused = {**item("uid-big", "big", priority=1_000_000), "status": {"phase": "Pending"}}
    listing.replaced([refused])

    assert join(listing.now(), []) == ()
    assert [pod.name for pod in join(listing.now(), None)] == ["big"]
    assert [pod.name for pod in join(listing.now(), [local("uid-big")])] == ["big"]

    listing.changed("MODIFIED", {**refused, "status": {"phase": "Running"}})

    assert [pod.name for pod in join(listing.now(), [])] == ["big"]


def test_a_pod_that_waits_and_is_deleted_leaves_with_its_cgroup(listing):
    waiting = {**item("uid-job", "job"), "status": {"phase": "Pending"}}
    waiting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    listing.replaced([waiting])

    assert join(listing.now(), []) == ()
    assert [pod.name for pod in join(listing.now(), [local("uid-job")])] == ["job"]


def test_one_that_is_being_deleted_and_has_ended_is_gone(listing):
    gone = item("uid-job", "job")
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    listing.replaced([{**gone, "status": {"phase": "Succeeded"}}])

    assert join(listing.now(), [local("uid-job")]) == ()


def test_no_pod_takes_the_cgroup_of_another_by_calling_itself_its_mirror(listing):
    marks = {
        "kubernetes.io/config.mirror": "x",
        "kubernetes.io/config.hash": VICTIM,
    }
    victim = item(VICTIM, "victim", priority=1_000_000)
    impostor = item("uid-of-the-impostor", "impostor", marks, priority=-1000)

    for order in ([victim, impostor], [impostor, victim]):
        listing.replaced(order)

        assert [pod.name for pod in listing.now().pods] == ["victim"]


def test_of_two_mirrors_of_one_static_pod_the_first_counts(listing):
    marks = {"kubernetes.io/config.mirror": STATIC, "kubernetes.io/config.hash": STATIC}
    listing.replaced([item("first", "etcd", marks)])

    listing.changed("ADDED", item("second", "impostor", marks))

    assert [pod.name for pod in listing.now().pods] == ["etcd"]


def test_the_mirror_that_its_node_controls_is_the_static_pod(listing):
    marks = {"kubernetes.io/config.mirror": STATIC, "kubernetes.io/config.hash": STATIC}
    real, impostor = item("real", "etcd", marks), item("forged", "impostor", marks)
    real["metadata"]["ownerReferences"] = [{"kind": "Node", "name": "n", "controller": True}]

    for order in ([real, impostor], [impostor, real]):
        listing.replaced(order)

        assert [pod.name for pod in listing.now().pods] == ["etcd"]
        assert listing.now().uids == {STATIC: "real"}


def test_a_pod_that_leaves_takes_no_cgroup_with_it_by_calling_itself_its_mirror(listing):
    marks = {
        "kubernetes.io/config.mirror": "x",
        "kubernetes.io/config.hash": VICTIM,
    }
    victim, impostor = (
        item(VICTIM, "victim"),
        item("impostor", "impostor", marks),
    )
    impostor["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    listing.replaced([impostor, victim])

    assert [pod.name for pod in listing.now().pods] == ["victim"]
    assert listing.now().leaving == ()
    assert listing.now().uids == {VICTIM: VICTIM}


def test_a_claim_that_is_refused_is_logged_once(listing):
    marks = {
        "kubernetes.io/config.mirror": "x",
        "kubernetes.io/config.hash": VICTIM,
    }
    listing.replaced([item(VICTIM, "victim"), item("i", "impostor", marks)])

    with capture_logs() as logs:
        listing.now()
        listing.changed("MODIFIED", item(VICTIM, "victim", priority=5))
        listing.now()

    (warning,) = logs
    assert warning["event"] == "pod_claim_refused"
    assert (warning["pod"], warning["cgroup_of"]) == ("default/impostor", "default/victim")


def test_pods_of_one_namespace_that_cannot_be_read_silence_nothing_about_another(listing):
    def odd(namespace, number):
        metadata = {"name": f"p{number}", "namespace": namespace, "uid": f"{namespace}-{number}"}
        return {"metadata": metadata, "spec": {"containers": "none"}}

    with capture_logs() as logs:
        listing.replaced([odd("evil", number) for number in range(60)])
        listing.changed("ADDED", odd("shop", 1))

    names = [entry["pod"] for entry in logs if entry["event"] == "pod_not_read"]
    assert names == [*(f"p{number}" for number in range(20)), "p1"]


def spelt(cpu, **metadata):
    made = item("uid", "spelt", priority=5)
    made["metadata"] |= {"creationTimestamp": "2026-03-02T08:15:04Z", **metadata}
    made["spec"]["containers"] = [{"name": "app", "resources": {"requests": {"cpu": cpu}}}]
    return made


def requests(listing):
    return [(pod.priority, pod.cpu_request_millis) for pod in listing.now().pods]


def test_leading_zeros_of_a_request_change_nothing(listing):
    listing.replaced([spelt("900m")])
    before = requests(listing)
    listing.changed("MODIFIED", spelt("0" * 100_000 + "1m"))

    assert before == [(5, 900)]
    assert requests(listing) == [(5, 1)]


def test_a_request_that_cannot_be_read_counts_as_nothing_and_the_tier_stays(listing):
    listing.replaced([spelt("900m")])
    with capture_logs() as logs:
        listing.changed("MODIFIED", spelt("a few"))

    assert requests(listing) == [(5, 0)]
    assert [entry["event"] for entry in logs] == ["quantity_not_read"]


def test_a_pod_that_can_no_longer_be_read_keeps_its_tier_and_no_request(listing):
    listing.replaced([spelt("900m")])
    listing.changed("MODIFIED", spelt("1m", annotations={"kubernetes.io/config.mirror": "!"}))

    assert requests(listing) == [(5, 0)]


def test_what_changes_nothing_about_a_pod_is_no_news(listing):
    told = []
    listing = Listing(Account(), lambda: told.append(listing.now()))
    listing.replaced([item("uid")])

    listing.changed("MODIFIED", {**item("uid"), "status": {"phase": "Running"}})
    listing.changed("MODIFIED", item("uid", priority=5))

    assert [[pod.priority for pod in each.pods] for each in told] == [[None], [5]]


NAMES = st.sampled_from(["a", "b", "c", "d"])
CHANGES = st.one_of(
    st.tuples(st.just("put"), NAMES, st.integers(-5, 5)),
    st.tuples(st.just("end"), NAMES, st.just(0)),
    st.tuples(st.just("delete"), NAMES, st.just(0)),
    st.tuples(st.just("list again"), NAMES, st.just(0)),
)


@given(st.lists(CHANGES, max_size=30))
@settings(max_examples=100)
def test_whatever_the_order_of_changes_what_is_known_is_what_there_is(changes):
    listing, there = Listing(Account()), {}

    for change, name, priority in changes:
        if change == "put":
            kind = "MODIFIED" if name in there else "ADDED"
            there[name] = item(f"uid-{name}", name, priority=priority)
            listing.changed(kind, there[name])
        elif change == "end" and name in there:
            there[name] = {**there[name], "status": {"phase": "Failed"}}
            listing.changed("MODIFIED", there[name])
        elif change == "delete":
            gone = there.pop(name, item(f"uid-{name}", name))
            listing.changed("DELETED", gone)
        elif change == "list again":
            listing.replaced(list(there.values()))

    running = {n: i["spec"]["priority"] for n, i in there.items() if "status" not in i}
    assert {pod.name: pod.priority for pod in listing.now().pods} == running
    assert listing.now().ended == {f"uid-{n}" for n, i in there.items() if "status" in i}


@pytest.mark.timeout(60)
def test_a_hundred_thousand_pending_pods_are_not_compared_with_each_other(listing, monkeypatch):
    """Any author of pods can name a node. The limit is of a hang: comparing takes minutes."""
    uids = [f"pod-{number}" for number in range(100_000)]
    made = iter([SimpleNamespace(uid=uid, key=uid, annotations={}) for uid in uids])
    status = {"phase": "Pending", "startTime": "2026-01-01T00:00:00Z"}
    monkeypatch.setattr(
        "temper_plugin_kubernetes.listing.read_pod_object", lambda *_, **__: next(made)
    )
    listing.replaced({"metadata": {"uid": uid}, "status": status} for uid in uids)

    listed = listing.now()

    assert (len(listed.waiting), listed.pods, listed.leaving) == (100_000, (), ())


def test_annotations_of_any_size_are_not_kept(listing):
    """The API server takes 256 KiB of each pod, and any author of pods can name this node."""
    short = {"temper.codes/workload-profile": "nginx"}
    large = {f"made-{number}": "x" * 40_000 for number in range(6)}
    listing.replaced([item("uid-web", annotations=large | short)])

    (pod,) = listing.now().pods

    assert pod.annotations == short


def waiting(uid, **changes):
    """A pod that its author has made with as many and as large containers as are kept."""
    containers = [{"name": f"c{number}", "image": "x" * 512} for number in range(256)]
    return {
        **item(uid, uid, containers=containers),
        "status": {"phase": "Pending", **changes},
    }


def test_of_pods_that_no_kubelet_has_accepted_only_so_many_are_kept(listing):
    """Any author of pods can name this node, and any number of them."""
    pods = [waiting(f"pod-{number}") for number in range(40)]

    listing.replaced(pods)

    assert 10 < len(listing.now().waiting) < 20

    listing.changed("ADDED", waiting("pod-late"))
    listing.changed("MODIFIED", waiting("pod-39", startTime="2026-01-01T00:00:00Z"))
    listing.changed("ADDED", item("uid-web"))

    assert "pod-late" not in {pod.uid for pod in listing.now().waiting}
    assert "pod-39" in {pod.uid for pod in listing.now().waiting}
    assert [pod.uid for pod in listing.now().pods] == ["uid-web"]

    for gone in pods[:20]:
        listing.changed("DELETED", gone)
    listing.changed("MODIFIED", waiting("pod-late"))

    assert "pod-late" in {pod.uid for pod in listing.now().waiting}


def test_pods_of_ordinary_size_wait_by_the_hundred(listing):
    listing.replaced({**item(f"pod-{n}"), "status": {"phase": "Pending"}} for n in range(1_000))

    assert len(listing.now().waiting) == 1_000
