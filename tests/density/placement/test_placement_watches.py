"""What the extender's two watches write into its ledger, by scripted answers of an API server."""

import asyncio
import threading
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from temper_core import Tier
from temper_kube.access import Access
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.watching import Watches
from tests.density.placement.made import READER, node_object, pod_object
from tests.kube_client.made_server import MadeServer, in_pages
from tests.kube_client.scripted import Scripted, refusal

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"


def pod(name, version="11", **given):
    return pod_object(name, Tier.HIGH, "1", "one", resourceVersion=version, **given)


def pods(*items, version="10"):
    return 200, {}, {"metadata": {"resourceVersion": version}, "items": list(items)}


def events(*changes):
    return [{"type": kind, "object": item} for kind, item in changes]


@contextmanager
def serving(server):
    try:
        yield server
    finally:
        server.close()


def watched(access, until):
    """Watch until the ledger is as it should be; return it, and the watches."""

    async def run():
        ledger = Ledger()
        watches = Watches(ledger, READER)
        watches.start(access)
        try:
            async with asyncio.timeout(20):
                while not until(ledger, watches):  # noqa: ASYNC110 - as a client of it looks
                    await asyncio.sleep(0.01)
        finally:
            await watches.close()
        return ledger, watches

    return asyncio.run(run())


def watch_pods(server, until):
    """Watch where the same answers stand for nodes and for pods: nodes have other names."""
    return watched(server.access, lambda ledger, _: ledger.find_pod(f"shop/{until}"))


def test_only_bound_pods_that_have_not_ended_are_asked_for():
    with serving(Scripted()) as server:
        server.lists, server.watches = [pods(pod("a"))], [(200, {}, [Scripted.HANG])]

        watch_pods(server, "a")

    selected = {each["fieldSelector"] for each in server.asked if "fieldSelector" in each}
    assert selected == {"spec.nodeName!=,status.phase!=Failed,status.phase!=Succeeded"}


def test_large_collections_are_listed_in_pages():
    with serving(MadeServer()) as server:
        server.answers[NODES] = in_pages([node_object(f"n{number:03}") for number in range(300)])
        server.answers[PODS] = in_pages([pod(f"p{number}") for number in range(600)])
        access = Access("127.0.0.1", int(server.url.rpartition(":")[2]), is_tls=False)

        ledger, watches = watched(
            access, lambda ledger, _: len(ledger.nodes) == 300 and ledger.pods == 600
        )

    lists = [(path, query) for _, path, query in server.asked if "watch" not in query]
    assert [path for path, _ in lists].count(NODES) == 2
    assert [path for path, _ in lists].count(PODS) == 3
    assert all(query["limit"] == "250" for _, query in lists)
    assert watches.nodes.has_listed.is_set()
    assert watches.pods.has_listed.is_set()
    assert ledger.find_pod("shop/p599")


def test_pods_that_come_and_go_are_in_the_ledger():
    came = events(("DELETED", pod("a")), ("ADDED", pod("b")), ("MODIFIED", pod("c")))
    with serving(Scripted()) as server:
        server.lists = [pods(pod("a"))]
        server.watches = [(200, {}, [*came, Scripted.HANG])]

        ledger, watches = watch_pods(server, "c")

    assert ledger.find_pod("shop/a") is None
    assert ledger.pods == 2
    assert watches.unreadable == 0


def test_a_pod_that_cannot_be_read_is_counted_and_left_out():
    odd = {**pod("odd"), "spec": {"nodeName": "one", "containers": "none"}}
    with serving(Scripted()) as server, capture_logs() as logs:
        server.lists, server.watches = [pods(odd, pod("a"))], [(200, {}, [Scripted.HANG])]

        ledger, watches = watch_pods(server, "a")

    assert (ledger.pods, watches.unreadable) == (1, 1)
    assert [(each["event"], each["uid"]) for each in logs] == [("pod_not_read", "uid-odd")]


def test_a_pod_with_a_request_that_cannot_be_read_counts_without_it():
    odd = pod("odd")
    odd["metadata"]["creationTimestamp"] = "2026-03-02T08:15:04Z"
    odd["spec"]["containers"] = [{"name": "app", "resources": {"requests": {"cpu": "a few"}}}]
    with serving(Scripted()) as server, capture_logs() as logs:
        server.lists, server.watches = [pods(odd, pod("a"))], [(200, {}, [Scripted.HANG])]

        ledger, watches = watch_pods(server, "a")

    assert ledger.find_pod("shop/odd")[1].millis == 0
    assert (ledger.pods, watches.unreadable) == (2, 1)
    assert [(each["event"], each["uid"]) for each in logs] == [("quantity_not_read", "uid-odd")]


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_refusal_is_tried_again_and_what_was_known_stands(status):
    with serving(Scripted()) as server, capture_logs() as logs:
        server.lists = [pods(pod("a"))]
        server.watches = [
            *[refusal(status, "not now")] * 2,
            (200, {}, [*events(("ADDED", pod("b"))), Scripted.HANG]),
        ]

        ledger, _ = watch_pods(server, "b")

    lost = [each for each in logs if each["event"] == "watch_lost"]
    assert lost
    assert all("not now" in each["reason"] for each in lost)
    assert ledger.pods == 2


def test_a_list_that_is_refused_is_logged():
    with serving(Scripted()) as server, capture_logs() as logs:
        server.lists = [refusal(403, "nodes is forbidden")]

        watched(server.access, lambda _, watches: watches.pods.restarts and watches.nodes.restarts)

    lost = {(each["event"], each["resource"]) for each in logs}
    assert lost == {("watch_lost", "nodes"), ("watch_lost", "pods")}


@pytest.mark.parametrize("after", range(0, 200, 50))
def test_it_ends_when_it_is_told_to_although_events_keep_coming(after):
    came = events(*[("ADDED", pod(f"p{number}")) for number in range(300)])

    async def run():
        watches = Watches(Ledger(), READER)
        watches.start(server.access)
        await asyncio.sleep(0.02 + after / 1000)
        await watches.close()
        return len(asyncio.all_tasks())

    with serving(Scripted()) as server:
        server.lists, server.watches = [pods(pod("a"))], [(200, {}, came)]

        assert asyncio.run(asyncio.wait_for(run(), 20)) <= 2

    assert not [each for each in threading.enumerate() if each.name.startswith("watch-")]
