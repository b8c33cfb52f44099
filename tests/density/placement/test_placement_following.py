"""What the two watches do when the API server forgets, refuses, falls silent or talks nonsense."""

import asyncio
from contextlib import suppress

import pytest
from lightkube import KubeConfig
from lightkube.config.kubeconfig import Cluster, User
from lightkube.core.async_client import AsyncClient
from structlog.testing import capture_logs

from temper_plugin_density.placement.following import Following, Lookout, Pods
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.watching import Watch
from tests.density.placement.made import READER
from tests.kube_client.scripted import Scripted, event, failure, listing, refusal

HANG = Scripted.HANG


class Told:
    """Remembers what it is told, by name, and says when it has heard of somebody."""

    def __init__(self):
        self.names, self.lists, self.awaited = set(), 0, ""
        self.heard = asyncio.Event()

    def read(self, item):
        return item["metadata"]["name"]

    def replaced(self, read):
        self.names, self.lists = set(read), self.lists + 1
        self._look()

    def changed(self, kind, item):
        name = self.read(item)
        (self.names.discard if kind == "DELETED" else self.names.add)(name)
        self._look()

    def _look(self):
        if self.awaited in self.names:
            self.heard.set()


@pytest.fixture
def server():
    server = Scripted()
    yield server
    server.close()


def client_of(server):
    url = f"http://127.0.0.1:{server.access.port}"
    config = KubeConfig.from_one(cluster=Cluster(server=url), user=User(token="any"))
    return AsyncClient(config, trust_env=False)


def follow(server, until, quiet_s=30.0):
    """Follow the pods until somebody is heard of; return who is known then, and how it fares."""

    async def run():
        told, lookout = Told(), Lookout("pods")
        told.awaited = until
        client = client_of(server)
        task = asyncio.create_task(Following(client, Pods, told, lookout, quiet_s=quiet_s).run())
        try:
            await asyncio.wait_for(told.heard.wait(), 20)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await client.close()
        return told, lookout

    return asyncio.run(run())


def test_only_bound_pods_that_have_not_ended_are_asked_for(server):
    server.lists, server.watches = [listing("a")], [(200, {}, [HANG])]

    follow(server, until="a")

    assert server.asked[0]["fieldSelector"] == (
        "spec.nodeName!=,status.phase!=Failed,status.phase!=Succeeded"
    )


def test_a_watch_goes_on_from_the_list(server):
    server.lists = [listing("a", "b", version="10")]
    server.watches = [(200, {}, [event("DELETED", "a"), event("ADDED", "c", "12"), HANG])]

    told, lookout = follow(server, until="c")

    assert told.names == {"b", "c"}
    assert server.asked[1]["resourceVersion"] == "10"
    assert (lookout.has_listed, lookout.is_up, lookout.reason) == (True, True, "")


def test_a_watch_that_ends_goes_on_where_it_was(server):
    server.lists = [listing("a")]
    server.watches = [
        (200, {}, [event("ADDED", "b", "12")]),
        (200, {}, [event("ADDED", "c", "13"), HANG]),
    ]

    told, _ = follow(server, until="c")

    assert told.names == {"a", "b", "c"}
    assert (told.lists, server.asked[2]["resourceVersion"]) == (1, "12")


@pytest.mark.parametrize(
    "gone", [(200, {}, [failure(410, "too old resource version")]), refusal(410, "too old")]
)
def test_versions_that_are_gone_ask_for_another_list(server, gone):
    server.lists = [listing("a"), listing("b", version="20")]
    server.watches = [gone, (200, {}, [HANG])]

    told, _ = follow(server, until="b")

    assert (told.names, told.lists) == ({"b"}, 2)


def test_a_server_that_is_back_and_has_forgotten_is_listed_without_another_long_wait(
    server, monkeypatch
):
    server.lists = [listing("a"), listing("b")]
    server.watches = [*[refusal(503, "starting")] * 6, refusal(410, "too old"), (200, {}, [HANG])]
    waits, sleep = [], asyncio.sleep

    async def noted(seconds):
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)

    follow(server, until="b")

    *while_away, once_back = waits
    assert max(while_away) > 10
    assert once_back <= 1


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_refusal_is_tried_again_and_what_was_known_stands(server, status):
    server.lists = [listing("a", version="10")]
    server.watches = [refusal(status, "not now"), (200, {}, [event("ADDED", "b"), HANG])]

    with capture_logs() as logs:
        told, lookout = follow(server, until="b")

    (lost,) = [each for each in logs if each["event"] == "watch_lost"]
    assert str(status) in lost["reason"] or "not now" in lost["reason"]
    assert (told.names, told.lists, lookout.restarts) == ({"a", "b"}, 1, 1)
    assert server.asked[2]["resourceVersion"] == "10"


def test_a_list_that_is_refused_is_tried_again(server):
    server.lists = [refusal(503, "starting"), listing("a")]
    server.watches = [(200, {}, [HANG])]

    told, _ = follow(server, until="a")

    assert told.names == {"a"}


def test_a_watch_that_is_silent_is_begun_anew_from_where_it_was(server):
    server.lists = [listing("a")]
    server.watches = [
        (200, {}, [event("ADDED", "b", "12"), HANG]),
        (200, {}, [event("ADDED", "c", "13"), HANG]),
    ]

    with capture_logs() as logs:
        told, _ = follow(server, until="c", quiet_s=0.2)

    assert told.names == {"a", "b", "c"}
    assert (told.lists, server.asked[2]["resourceVersion"]) == (1, "12")
    assert [each for each in logs if each["event"] == "watch_lost"] == []


@pytest.mark.parametrize(
    "line", ["{", "null", '{"type": "ADDED"}', '{"type": "ADDED", "object": 7}']
)
def test_nonsense_in_a_watch_ends_it_and_everything_is_listed_again(server, line):
    server.lists = [listing("a"), listing("b")]
    server.watches = [(200, {}, [line]), (200, {}, [HANG])]

    with capture_logs():
        told, _ = follow(server, until="b")

    assert told.names == {"b"}


@pytest.mark.parametrize("after", range(0, 200, 20))
def test_it_ends_when_it_is_told_to_although_events_keep_coming(server, after):
    server.lists = [listing("a")]
    server.watches = [(200, {}, [event("ADDED", f"p{number}") for number in range(300)])]
    watch = Watch(Ledger(), READER)

    async def run():
        async with asyncio.timeout(20):
            client = client_of(server)
            watch.start(client)
            await asyncio.sleep(0.02 + after / 1000)
            await watch.close()
            await client.close()

            return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1
