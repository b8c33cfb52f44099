"""List and watch against scripted answers: what a real server says too seldom to wait for it."""

import itertools
import os

import pytest
from attrs import evolve
from structlog.testing import capture_logs

from temper_kube import list_pages, list_watch, watch_status
from temper_kube.access import Credentials
from temper_kube.backoff import Backoff
from temper_kube.credential_programs import Command, CredentialProgram
from temper_kube.list_watch import ListWatch, Query
from temper_kube.watch_status import WatchStatus
from tests.control_plane.cluster import wait_until
from tests.kube_client.scripted import Scripted, bookmark, event, failure, listing, refusal

HANG = Scripted.HANG
QUERY = Query("/api/v1/pods", "spec.nodeName=n")


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

    def status_changed(self):
        pass


class Noting(Backoff):
    """Notes how long the server asked to be left alone, and how long to wait; waits for nothing."""

    def __init__(self, *bounds):
        super().__init__(*bounds)
        self.asked, self.waits = [], []

    def failed(self, at_least_s=0.0):
        self.asked.append(at_least_s)
        self.waits.append(super().failed(at_least_s))
        return 0.0


@pytest.fixture
def server():
    server = Scripted()
    yield server
    server.close()


@pytest.fixture
def follow(server):
    """Follow the scripted server, with waits of no length to speak of."""
    started = []

    def begin(backoff=None, names=None, query=QUERY, **options):
        names, status = names or Names(), WatchStatus("pods")
        access, backoff = options.pop("access", server.access), backoff or Backoff(0.01, 0.02)
        watch = ListWatch(access, query, names, status, backoff, **options)
        watch.start()
        started.append(watch)
        return names, status

    yield begin
    for watch in started:
        watch.close()


def versions(server):
    return [asked["resourceVersion"] for asked in server.asked if "watch" in asked]


def listed_from(server):
    return [asked.get("resourceVersion") for asked in server.asked if "watch" not in asked]


def test_a_list_from_the_cache_and_then_every_change(server, follow):
    server.lists = [listing("a", "b")]
    server.watches = [(200, {}, [event("ADDED", "c"), event("DELETED", "a"), HANG])]

    names, status = follow()
    wait_until(lambda: names.names == {"b", "c"}, "what is left")

    first, second = server.asked
    assert first == {"fieldSelector": "spec.nodeName=n", "resourceVersion": "0"}
    assert (second["resourceVersion"], second["allowWatchBookmarks"]) == ("10", "true")
    assert 240 <= int(second["timeoutSeconds"]) <= 480
    assert status.is_up
    assert status.stale(0.0) is None


def test_a_watch_that_ends_in_time_goes_on_from_the_last_bookmark(server, follow, monkeypatch):
    monkeypatch.setattr(list_watch, "EARLY_S", list_watch.LONGEST_WATCH_S)
    server.lists = [listing("a")]
    server.watches = [(200, {}, [event("ADDED", "b"), bookmark("42")]), (200, {}, [HANG])]

    names, status = follow()
    wait_until(lambda: len(versions(server)) == 2, "the second watch")

    assert versions(server) == ["10", "42"]
    assert (names.names, status.lists) == ({"a", "b"}, 1)


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

    assert listed_from(server) == ["0", None]
    assert names.names == {"b"}
    assert logs == []


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ((200, {}, [bookmark("20")]), "20"),
        ((200, {}, [bookmark("20"), failure(500, "storage is being initialised")]), "20"),
        ((200, {}, [bookmark("20"), '{"type": "ADDED"']), "20"),
        (refusal(503, "starting"), "10"),
    ],
    ids=["too early an end", "an error", "cut off", "503"],
)
def test_after_a_failure_a_list_shows_that_the_server_still_has_the_version(
    server, follow, answer, seen
):
    server.lists = [listing("a"), listing("a", "b", version="25")]
    server.watches = [answer, (200, {}, [HANG])]

    names, status = follow()
    wait_until(lambda: names.names == {"a", "b"}, "the second list")
    wait_until(lambda: status.is_up, "the second watch")

    assert listed_from(server) == ["0", seen]
    assert versions(server) == ["10", "25"]


@pytest.mark.parametrize(
    "refused", [refusal(429, "slow down", Retry_After="0"), refusal(403, "forbidden")]
)
def test_a_server_that_refuses_a_watch_is_not_asked_for_another_list(server, follow, refused):
    server.lists = [listing("a")]
    server.watches = [refused, (200, {}, [event("ADDED", "b"), HANG])]

    names, status = follow()
    wait_until(lambda: names.names == {"a", "b"}, "the second watch")

    assert versions(server) == ["10", "10"]
    assert status.lists == 1


def test_a_server_that_was_restored_from_a_backup_is_listed_anew(server, follow):
    """It takes a watch from a version of its future, and leaves all events out until then."""
    server.lists = [
        listing("a", version="1038"),
        refusal(504, "Timeout: Too large resource version: 1038, current: 226"),
        listing("b", version="226"),
    ]
    server.watches = [refusal(503, "starting"), (200, {}, [HANG])]

    backoff = Noting(8.0, 16.0)
    names, status = follow(backoff)
    wait_until(lambda: names.names == {"b"}, "the newest list")
    wait_until(lambda: status.is_up, "the watch")

    before, after = backoff.waits
    assert before <= 8
    assert after <= 8
    assert listed_from(server) == ["0", "1038", None]
    assert versions(server) == ["1038", "226"]


def test_a_gateway_that_times_out_does_not_bring_the_newest_list(server, follow):
    server.lists = [listing("a"), refusal(504, "Gateway Time-out"), listing("b")]
    server.watches = [refusal(503, "starting"), (200, {}, [HANG])]

    names, _ = follow()
    wait_until(lambda: names.names == {"b"}, "the list")

    assert listed_from(server) == ["0", "10", "10"]


def test_a_watch_that_the_server_does_not_end_is_begun_again(server, follow, monkeypatch):
    for name in ("SHORTEST_WATCH_S", "LONGEST_WATCH_S", "LATE_S"):
        monkeypatch.setattr(list_watch, name, 0)
    server.lists = [listing("a")]
    server.watches = [(200, {}, [bookmark("20"), bookmark("21"), HANG]), (200, {}, [HANG])]

    follow()
    wait_until(lambda: len(versions(server)) == 2, "the second watch")

    assert versions(server) == ["10", "20"]


def test_behind_a_proxy_that_holds_events_back_a_list_shows_the_changes(
    server, follow, monkeypatch
):
    monkeypatch.setattr(list_watch, "QUIET_S", 0.3)
    monkeypatch.setattr(watch_status, "SILENT_S", 0.2)
    server.lists = [listing("a"), listing("b", version="20")]
    server.watches = [(200, {}, [HANG])]

    names, status = follow()
    wait_until(lambda: names.names == {"b"}, "the list after the silent watch")
    wait_until(lambda: status.lists > 2, "one more list")

    assert not status.is_up
    assert status.age_s > 0


def test_a_watch_after_a_silent_one_is_up_once_something_was_heard():
    clock = itertools.count(0.0, watch_status.SILENT_S)
    status = WatchStatus("pods", lambda: next(clock))
    status.listed()
    status.began()
    assert status.is_up

    status.ended("silent")
    status.began()
    is_up_at_once = status.is_up
    status.heard()

    assert not is_up_at_once
    assert status.is_up


@pytest.mark.parametrize("line", ["this is no JSON", "[1, 2]", '{"type": "ADDED"'])
def test_an_event_that_cannot_be_read_asks_for_a_list_as_it_would_come_again(server, follow, line):
    server.lists = [listing("a"), listing("a", "b", version="30")]
    server.watches = [(200, {}, [bookmark("20"), line]), (200, {}, [HANG])]

    names, status = follow()
    wait_until(lambda: names.names == {"a", "b"}, "the second list")
    wait_until(lambda: versions(server) == ["10", "30"], "the watch after it")

    assert status.lists == 2


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


@pytest.mark.parametrize(
    "endless",
    [listing("b", more="more"), (200, {}, ['{"items": [', Scripted.TRICKLE])],
    ids=["pages", "trickle"],
)
def test_a_list_without_end_is_left_and_asked_for_again(server, follow, monkeypatch, endless):
    monkeypatch.setattr(list_pages, "LIST_S", 0.3)
    server.lists, server.watches = [endless], [(200, {}, [HANG])]

    names, status = follow()
    wait_until(lambda: "0.3 s" in status.reason, "the end of the first list")
    server.lists = [listing("a")]

    wait_until(lambda: "a" in names.names, "the second list")


def test_a_follower_that_fails_is_told_of_and_does_not_end_the_watch(server, follow):
    server.lists = [listing("a")]
    server.watches = [(200, {}, [HANG])]

    with capture_logs() as logs:
        names, status = follow(names=Names(failures=[KeyError("odd")]))
        wait_until(lambda: names.names == {"a"} and status.is_up, "the second try")

    assert [entry["event"] for entry in logs] == ["watch_failed"]


def test_an_event_that_the_follower_cannot_take_asks_for_another_list(server, follow):
    server.lists = [listing("a"), listing("a", "b", version="20")]
    server.watches = [(200, {}, [event("ADDED", "odd"), HANG]), (200, {}, [HANG])]

    class Picky(Names):
        def changed(self, kind, item):
            raise KeyError(kind, item)

    with capture_logs() as logs:
        names, _ = follow(names=Picky())
        wait_until(lambda: versions(server) == ["10", "20"], "the second list")

    assert names.names == {"a", "b"}
    assert [entry["event"] for entry in logs] == ["watch_failed"]


def test_a_list_in_pages_is_of_one_version_and_not_from_the_cache(server, follow):
    server.lists = [listing("a", more="next", version="10"), listing("b", version="12")]
    server.watches = [(200, {}, [HANG])]

    names, status = follow(query=evolve(QUERY, page=1))
    wait_until(lambda: status.is_up, "the watch")

    selected = {"fieldSelector": "spec.nodeName=n", "limit": "1"}
    assert server.asked[:2] == [selected, {**selected, "continue": "next"}]
    assert (names.names, status.lists, versions(server)) == ({"a", "b"}, 1, ["10"])


def test_pages_that_expire_on_the_way_are_asked_for_from_the_first(server, follow):
    server.lists = [listing("a", more="next"), refusal(410, "too old"), listing("b", "c")]
    server.watches = [(200, {}, [HANG])]

    names, status = follow(query=evolve(QUERY, page=1))
    wait_until(lambda: status.is_up, "the watch")

    assert (names.names, status.lists) == ({"b", "c"}, 1)


def test_a_version_that_is_gone_again_and_again_is_not_listed_without_end(server, follow):
    server.lists = [listing("a")]
    server.watches = [*[refusal(410, "too old")] * 6, (200, {}, [HANG])]

    backoff = Noting()
    _, status = follow(backoff)
    wait_until(lambda: status.is_up, "the watch")

    assert max(backoff.waits) > 7


def test_each_new_reason_is_logged_once_where_that_is_asked_for(server, follow):
    server.lists = [*[refusal(403, "forbidden")] * 3, *[refusal(503, "away")] * 2, listing("a")]
    server.watches = [(200, {}, [HANG])]

    with capture_logs() as logs:
        _, status = follow(logs_each_reason=True)
        wait_until(lambda: status.is_up, "the watch")

    assert [entry["reason"][-9:] for entry in logs] == ["forbidden", "503: away"]


def test_a_loss_after_an_orderly_end_is_logged_once(server, follow):
    server.lists = [listing("a"), *[refusal(401, "Unauthorized")] * 3, listing("a")]
    server.watches = [(200, {}, [bookmark("20")]), (200, {}, [HANG])]

    with capture_logs() as logs:
        _, status = follow()
        wait_until(lambda: status.lists == 2 and status.is_up, "the second watch")

    assert [entry["event"] for entry in logs] == ["watch_lost"]
    assert "401" in logs[0]["reason"]


def test_an_orderly_end_before_a_watch_is_not_logged(server, follow):
    server.lists = [listing("a")]
    server.watches = [*[(200, {}, [bookmark("20")])] * 3, (200, {}, [HANG])]

    with capture_logs() as logs:
        follow()
        wait_until(lambda: len(versions(server)) == 4, "the last watch")

    assert logs == []


def test_credentials_that_a_program_does_not_give_are_asked_for_again(server, follow, tmp_path):
    script = tmp_path / "tell"
    script.write_text('#!/bin/sh\n[ -e "$0.once" ] || { touch "$0.once"; exit 3; }\n' + ISSUES)
    script.chmod(0o755)
    server.lists, server.watches = [listing("a")], [(200, {}, [HANG])]
    program = CredentialProgram(Command((str(script),), dict(os.environ)))
    access = evolve(server.access, credentials=Credentials(program=program))

    _, status = follow(access=access)
    wait_until(lambda: status.is_up, "the watch")

    assert status.reason == f"exec '{script}' ended with code 3"


ISSUES = """echo '{"status": {"token": "x"}}'\n"""


def test_a_list_that_is_refused_is_asked_for_again_and_the_reason_told(server, follow):
    server.lists = [refusal(403, 'pods is forbidden: User "x"'), listing("a")]
    server.watches = [(200, {}, [HANG])]

    names, status = follow()
    wait_until(lambda: names.names == {"a"}, "the list")

    assert status.reason == ('the API server refuses with status 403: pods is forbidden: User "x"')


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
