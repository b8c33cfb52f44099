"""What the pod source does while the API server restarts, forgets, refuses or is away."""

import json
import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from attrs import evolve
from structlog.testing import capture_logs

from temper_core import Execution, ExecutionNews
from temper_kube.access import Access
from tests.control_plane.cluster import pod, unique, wait_until
from tests.core.node.trees import make_cgroup, make_process
from tests.kubernetes.test_pods import slice_of

NOWHERE = Access("127.0.0.1", 9, is_tls=False)


def counted(account, name, resource="pods"):
    (family,) = [each for each in account.metrics() if each.name == name]
    return next(each.value for each in family.samples if each.labels["resource"] == resource)


def lists(account):
    return counted(account, "temper_kubernetes_lists_total")


def test_the_watch_survives_a_restart_of_the_api_server(cluster, node, access, watch):
    watched = watch(access, node)
    cluster.run(pod("before", node))
    watched.until(lambda pods: len(pods) == 1, "the first pod")

    cluster.restart()
    known = watched.names()
    cluster.run(pod("after", node))

    assert known == {"before"}
    watched.until(lambda pods: {each.name for each in pods} == {"before", "after"}, "both", 60)
    wait_until(lambda: watched.source.stale() is None, "a watch that is up", 60)


def test_what_changed_while_it_was_cut_off_is_in_the_next_list(
    cluster, node, access, watch, way, account
):
    watched = watch(access, node)
    cluster.run(pod("gone", node))
    watched.until(lambda pods: len(pods) == 1, "the first pod")

    way.cut()
    cluster.delete(pod("gone", node))
    cluster.run(pod("new", node))
    way.mend()

    watched.until(lambda pods: {each.name for each in pods} == {"new"}, "the new pod")
    wait_until(lambda: lists(account) == 2, "the end of the second list")


def test_versions_that_are_gone_ask_for_another_list(cluster, node, access, watch, way, account):
    watched = watch(access, node)
    cluster.run(pod("gone", node))
    watched.until(lambda pods: len(pods) == 1, "the first pod")

    way.cut()
    cluster.delete(pod("gone", node))
    cluster.run(pod("new", node))
    cluster.compact()
    cluster.restart()  # or its cache would still know
    way.mend()

    watched.until(lambda pods: {each.name for each in pods} == {"new"}, "the new pod", 60)
    assert lists(account) == 2


def test_a_server_whose_storage_was_restored_from_a_backup_is_heard(cluster, node, access, watch):
    watched = watch(access, node)
    cluster.run(pod("kept", node))
    watched.until(lambda pods: len(pods) == 1, "the first pod")

    cluster.backup()
    for number in range(500):  # a server needs some versions for its start
        cluster.annotate(node, number=str(number))
    cluster.run(pod("lost", node))
    watched.until(lambda pods: len(pods) == 2, "the pod that the backup lacks", 60)
    cluster.backup("--restore")
    cluster.run(pod("new", node))

    watched.until(lambda pods: {each.name for each in pods} == {"kept", "new"}, "the new pod", 60)


def test_with_the_server_away_the_last_word_stands_and_its_age_is_told(
    cluster, node, access, watch, way, made_host
):
    uid = cluster.run(pod("web", node, cpu="100m"))["metadata"]["uid"]
    leaving = cluster.run(pod("leaving", node, cpu="100m"))["metadata"]["uid"]
    paths = [make_cgroup(made_host.cgroups, slice_of(each)) for each in (uid, leaving)]
    watched = watch(access, node, stale_after_s=0.3)
    watched.until(lambda pods: all(each.cgroups for each in pods), "both cgroups")
    wait_until(lambda: watched.source.stale() is None, "a watch that is up")

    way.cut()
    staleness = wait_until(
        lambda: (found := watched.source.stale()) and "does not" in found.reason and found,
        "staleness",
    )
    still_known = watched.names()
    for file in paths[1].iterdir():
        file.unlink()
    paths[1].rmdir()
    make_cgroup(made_host.cgroups, slice_of("11111111-2222-3333-4444-555555555555"))
    watched.until(lambda pods: len(pods) == 2 and {"web"} < {p.name for p in pods}, "who is here")
    meanwhile = watched.names()
    way.mend()
    wait_until(lambda: watched.source.stale() is None, "a watch that is up", 40)

    assert still_known == {"web", "leaving"}
    assert meanwhile == {"web", "pod-11111111"}
    assert staleness.age_s > 0.3
    # The server has not let it go yet, so it is listed again.
    assert watched.names() == {"web", "leaving", "pod-11111111"}


@pytest.mark.parametrize("seed", range(3))
def test_after_any_number_of_cuts_what_is_known_is_what_there_is(
    cluster, node, access, watch, way, seed
):
    chance, there = random.Random(seed), set()
    watched = watch(access, node)
    watched.pods()

    for number in range(60):
        act = chance.choice(["make", "make", "delete", "cut", "mend", "ask"])
        if act == "make":
            there.add(f"p{number}")
            cluster.run(pod(f"p{number}", node))
        elif act == "delete" and there:
            leaving = chance.choice(sorted(there))
            there.remove(leaving)
            cluster.delete(pod(leaving, node))
        elif act in ("cut", "mend"):
            getattr(way, act)()
        else:
            watched.pods()
    way.mend()

    watched.until(lambda pods: {each.name for each in pods} == there, "what there is", 40)


def test_the_waits_between_tries_grow(node, access, watch, way):
    watched = watch(access, node)
    watched.pods()
    wait_until(lambda: watched.source.stale() is None, "a watch that is up")

    way.cut()
    before = way.accepted
    wait_until(lambda: way.accepted - before >= 3, "three tries")
    threading.Event().wait(2.0)

    assert way.accepted - before < 8


def test_a_token_that_has_expired_is_read_again(cluster, node, access, watch, way, token_file):
    good, name = token_file.read_text(), unique("revoked")
    account = {"kind": "ServiceAccount", "metadata": {"name": name, "namespace": "temper"}}
    cluster.make(account)
    revoked = cluster.token(name)
    cluster.delete(account)
    watched = watch(access, node, stale_after_s=0.1)
    watched.pods()
    wait_until(lambda: watched.source.stale() is None, "a watch that is up")

    token_file.write_text(revoked)
    way.cut()
    way.mend()
    refused = wait_until(
        lambda: (found := watched.source.stale()) and "401" in found.reason and found, "a refusal"
    )
    token_file.write_text(good)
    cluster.run(pod("late", node))

    assert "401" in refused.reason
    watched.until(lambda pods: [each.name for each in pods] == ["late"], "the pod", 40)


def test_a_token_that_is_missing_is_waited_for(cluster, node, access, watch, token_file):
    token = token_file.read_text()
    token_file.unlink()
    cluster.run(pod("web", node))
    watched = watch(access, node, stale_after_s=0.0)

    before = watched.names()
    staleness = watched.source.stale()
    token_file.write_text(token)

    assert before == set()
    assert str(token_file) in staleness.reason
    watched.until(lambda pods: len(pods) == 1, "the pod", 40)


def test_where_no_server_has_ever_answered_the_cgroups_tell(watch, made_host):
    make_cgroup(made_host.cgroups, slice_of("0f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f"))
    watched = watch(NOWHERE, "node-1", stale_after_s=0.0)

    found = watched.pods()
    staleness = watched.source.stale()

    assert set(found) == {"pod-0f1c2d3e"}
    assert "until it answers, pods come from cgroups alone" in staleness.reason


@pytest.fixture
def kubelet():
    """A kubelet's read-only view of one pod of high priority."""
    document = pod("db", "node-1", "shop", limit="2")
    document["metadata"]["uid"] = "0f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f"
    document["spec"]["priority"] = 1_000_000
    del document["kind"]

    class View(BaseHTTPRequestHandler):
        def do_GET(self):
            text = json.dumps({"kind": "PodList", "items": [document]}).encode()
            self.send_response(200 if self.path == "/pods" else 404)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), View)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_where_no_server_has_ever_answered_the_kubelet_is_asked(watch, made_host, kubelet):
    uid = "0f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f"
    make_cgroup(made_host.cgroups, slice_of(uid, qos=""))
    watched = watch(NOWHERE, "node-1", kubelet=kubelet, stale_after_s=0.0)

    found = watched.pods()

    assert set(found) == {"shop/db"}
    assert found["shop/db"].priority == 1_000_000
    assert found["shop/db"].cgroups == (f"{slice_of(uid, qos='')}/",)
    assert "pods come from the kubelet" in watched.source.stale().reason


def test_a_pod_that_cannot_be_read_leaves_the_others_as_they_are(
    cluster, node, access, watch, account
):
    cluster.run(pod("fine", node))
    # The server takes any name of a mirror; what names no cgroup is refused here.
    cluster.run(pod("odd", node, annotations={"kubernetes.io/config.mirror": "../../etc"}))

    with capture_logs() as logs:
        names = watch(access, node).names()

    assert names == {"fine"}
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["pod_not_read"]
    samples = next(each for each in account.metrics() if "unreadable" in each.name).samples
    assert [each.value for each in samples] == [1.0]


def test_closing_ends_a_watch_that_waits(node, access, watch):
    watched = watch(access, node)
    watched.pods()
    before = watching_threads()

    other = watch(evolve(access), node)
    other.pods()
    other.source.close()

    assert watching_threads() == before


def watching_threads():
    """Name the threads that have a name: those of the way to the server have none."""
    return sorted(
        each.name for each in threading.enumerate() if not each.name.startswith("Thread-")
    )


def test_an_exec_in_a_container_is_told_to_the_view_of_this_hosts_cgroups(made_host, watch):
    container = (
        f"{slice_of('8f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f')}/cri-containerd-{'ab' * 32}.scope"
    )
    folder = make_cgroup(made_host.cgroups, container)
    proc = made_host.directory / "proc"
    make_process(proc, 70, "sh", folder)
    watched = watch(NOWHERE, "no-node")
    watched.source.executed(ExecutionNews(is_heard=True))
    [before] = watched.source.pods()
    rests_s = watched.source.again_in_s()
    make_process(proc, 70, "mysqld")

    watched.source.executed(ExecutionNews((Execution(70, 9),), is_heard=True))
    due_in_s = watched.source.again_in_s()
    [after] = watched.source.pods()

    assert (before.containers[0].processes, after.containers[0].processes) == (("sh",), ("mysqld",))
    assert (due_in_s, rests_s > 60.0) == (0.0, True)
