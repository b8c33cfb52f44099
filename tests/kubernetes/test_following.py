"""List and watch against scripted answers: what a real server says too seldom to wait for it."""

import pytest
from structlog.testing import capture_logs

from temper_plugin_kubernetes.accounts import Lookout
from temper_plugin_kubernetes.backoff import Backoff
from temper_plugin_kubernetes.following import Following, Query
from tests.control_plane.cluster import wait_until
from tests.kube_client.scripted import Scripted, bookmark, event, failure, listing, refusal

HANG = Scripted.HANG


class Names:
    """A follower that keeps the names of what there is."""

    def __init__(self, names=(), failures=()):
        self.names = set(names)
        self.failures = list(failures)

    def replaced(self, items):
        if self.failures:
            raise self.failures.pop()
        self.names = {each["metadata"]["name"] for each in items}

    def changed(self, kind, item):
        change = self.names.discard if kind == "DELETED" else self.names.add
        change(item["metadata"]["name"])

    def wavered(self):
        pass


class Noting(Backoff):
    """Notes how long the server asked to be left alone."""

    def __init__(self, *bounds):
        super().__init__(*bounds)
        self.asked = []

    def failed(self, at_least_s=0.0):
        self.asked.append(at_least_s)
        return super().failed(at_least_s)


@pytest.fixture
def server():
    server = Scripted()
    yield server
    server.close()


@pytest.fixture
def follow(server):
    """Follow the scripted server, with waits of no length to speak of."""
    started = []

    def begin(backoff=None, names=None):
        names, lookout = names or Names(), Lookout("pods")
        query = Query("/api/v1/pods", "spec.nodeName=n")
        backoff = backoff or Backoff(0.01, 0.02)
        following = Following(server.access, query, names, lookout, backoff)
        following.start()
        started.append(following)
        return names, lookout

    yield begin
    for following in started:
        following.close()


def versions(server):
    return [asked["resourceVersion"] for asked in server.asked if "watch" in asked]


def test_a_list_from_the_cache_and_then_every_change(server, follow):
    server.lists = [listing("a", "b")]
    server.watches = [(200, {}, [event("ADDED", "c"), event("DELETED", "a"), HANG])]

    names, lookout = follow()
    wait_until(lambda: names.names == {"b", "c"}, "what is left")

    first, second = server.asked
    assert first == {"fieldSelector": "spec.nodeName=n", "resourceVersion": "0"}
    assert (second["resourceVersion"], second["allowWatchBookmarks"]) == ("10", "true")
    assert 240 <= int(second["timeoutSeconds"]) <= 480
    assert lookout.is_up
    assert lookout.stale(0.0) is None


def test_a_watch_that_ends_goes_on_from_the_last_bookmark(server, follow):
    server.lists = [listing("a")]
    server.watches = [(200, {}, [event("ADDED", "b"), bookmark("42")]), (200, {}, [HANG])]

    names, lookout = follow()
    wait_until(lambda: len(versions(server)) == 2, "the second watch")

    assert versions(server) == ["10", "42"]
    assert (names.names, lookout.lists) == ({"a", "b"}, 1)


@pytest.mark.parametrize(
    "gone",
    [(200, {}, [failure(410, "too old")]), refusal(410, "too old")],
    ids=["as an event", "as an answer"],
)
def test_a_version_that_is_gone_asks_for_the_newest_list(server, follow, gone):
    server.lists = [listing("a"), listing("b", version="90")]
    server.watches = [gone, (200, {}, [HANG])]

    with capture_logs() as logs:
        names, _ = follow()
        wait_until(lambda: versions(server) == ["10", "90"], "the second watch")

    lists = [asked for asked in server.asked if "watch" not in asked]
    assert [asked.get("resourceVersion") for asked in lists] == ["0", None]
    assert names.names == {"b"}
    assert logs == []


@pytest.mark.parametrize(
    "answer",
    [
        (200, {}, ["this is no JSON"]),
        (200, {}, ["[1, 2]"]),
        (200, {}, ['{"type": "ADDED"']),
        (200, {}, [failure(500, "storage is being initialised")]),
        refusal(429, "slow down", Retry_After="0"),
        refusal(503, "starting"),
    ],
    ids=["no JSON", "no object", "half an object", "an error", "429", "503"],
)
def test_whatever_goes_wrong_in_a_watch_it_is_begun_again_from_where_it_was(server, follow, answer):
    server.lists = [listing("a")]
    server.watches = [(200, {}, [bookmark("20")]), answer, (200, {}, [event("ADDED", "b"), HANG])]

    names, lookout = follow()
    wait_until(lambda: names.names == {"a", "b"}, "the third watch")

    assert versions(server) == ["10", "20", "20"]
    assert lookout.lists == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "ADDED"},
        {"type": "ADDED", "object": None},
        {"type": "NOVEL", "object": {"metadata": {"resourceVersion": "30"}}},
        {"object": {"metadata": None}},
    ],
)
def test_an_event_that_makes_no_sense_is_passed_over(server, follow, odd):
    server.lists = [listing("a")]
    server.watches = [(200, {}, [odd, event("ADDED", "b"), HANG])]

    names, _ = follow()

    wait_until(lambda: names.names == {"a", "b"}, "the event behind it")
    assert len(versions(server)) == 1


@pytest.mark.parametrize("text", ["no JSON at all", "[]", "\xff\xfe"])
def test_a_list_that_makes_no_sense_is_asked_for_again(server, follow, text):
    server.lists = [(200, {}, text), listing("a")]
    server.watches = [(200, {}, [HANG])]

    names, _ = follow()

    wait_until(lambda: names.names == {"a"}, "the list")


def test_a_follower_that_fails_is_told_of_and_does_not_end_the_watch(server, follow):
    server.lists = [listing("a")]
    server.watches = [(200, {}, [HANG])]

    with capture_logs() as logs:
        names, lookout = follow(names=Names(failures=[KeyError("odd")]))
        wait_until(lambda: names.names == {"a"} and lookout.is_up, "the second try")

    assert [entry["event"] for entry in logs] == ["watch_failed"]


def test_a_list_that_is_refused_is_asked_for_again_and_the_reason_told(server, follow):
    server.lists = [refusal(403, 'pods is forbidden: User "x"'), listing("a")]
    server.watches = [(200, {}, [HANG])]

    names, lookout = follow()
    wait_until(lambda: names.names == {"a"}, "the list")

    assert lookout.reason == ('the API server refuses with status 403: pods is forbidden: User "x"')


def test_the_server_says_how_long_to_stay_away(server, follow):
    server.lists = [refusal(429, "busy", Retry_After="7"), listing("a")]
    server.watches = [(200, {}, [HANG])]

    backoff = Noting(0.01, 0.02)
    names, _ = follow(backoff)
    wait_until(lambda: names.names == {"a"}, "the list")

    assert backoff.asked == [7.0]


def test_of_objects_that_only_their_metadata_is_wanted_of_no_more_is_asked():
    query = Query("/api/v1/nodes", "metadata.name=n", metadata_only=True)

    assert query.accepts("PartialObjectMetadata") == (
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
    )
