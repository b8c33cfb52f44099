"""What large lists and slow servers take: the memory of one object, and a bounded time."""

import tracemalloc

import pytest

from temper_core import MachineError
from temper_kube import connection as connection_module
from temper_kube.access import Access
from temper_kube.api_server import ApiServer
from temper_kube.connection import LARGEST_BYTES, LARGEST_REFUSAL_BYTES, Connection
from temper_kube.failures import RefusalError
from tests.kube_client.made_server import MadeServer
from tests.kube_client.scripted import Scripted, bookmark, item, listing
from tests.patience import PATIENCE_S

LARGE = 1_400_000
"""An object below etcd's usual bound of 1.5 MiB."""
MANY = 60
"""So many of them are more than all of the bounds that a whole list ever had, 64 MiB."""
MIB = 1 << 20


@pytest.fixture
def server():
    server = Scripted()
    yield server
    server.close()


def large(number):
    return {**item(f"large-{number}"), "spec": {"env": "x" * LARGE}}


def large_list(more=""):
    status, headers, document = listing(more=more)
    return status, headers, {**document, "items": [large(number) for number in range(MANY)]}


def names(items):
    return [each["metadata"]["name"] for each in items]


def test_a_list_is_as_large_as_its_objects_are_and_one_of_them_is_held(server):
    server.lists = [large_list()]
    rest = {}

    with Connection(server.access) as connection:
        found = names(connection.items("/api/v1/pods", rest))

    assert found == [f"large-{number}" for number in range(MANY)]
    assert rest["metadata"] == {"resourceVersion": "10"}


def test_a_page_is_as_large_as_its_objects_are(server):
    server.lists = [large_list(more="next"), listing("last")]

    with ApiServer(server.access) as api:
        assert names(api.each("/api/v1/pods"))[-2:] == [f"large-{MANY - 1}", "last"]


def test_the_objects_of_a_page_come_before_its_end(server):
    """A page in memory takes ten times its text if it has many small values."""
    server.lists = [(200, {}, ['{"items": [', large(0), ",", large(1), ",", Scripted.HANG])]

    with ApiServer(server.access) as api:
        assert names([next(api.each("/api/v1/pods"))]) == ["large-0"]


class SeenError(Exception):
    """The reader has got an object."""


def test_a_list_is_read_object_by_object(server):
    server.lists = [(200, {}, ['{"items": [', large(0), ",", large(1), ",", Scripted.HANG])]

    def record_of(_item):
        raise SeenError

    with ApiServer(server.access) as api, pytest.raises(SeenError):
        api.read("/api/v1/pods", record_of)


@pytest.mark.parametrize("ask", ["items", "ask"])
def test_an_object_beyond_its_bound_is_named_as_such(server, ask):
    server.lists = [
        (200, {}, {"items": [{"spec": "x" * (LARGEST_BYTES + MIB)}]}),
    ]

    with Connection(server.access) as connection, pytest.raises(MachineError, match="large"):
        list(connection.items("/x", {})) if ask == "items" else connection.ask("GET", "/x")


@pytest.mark.parametrize("answer", [(100, {}, [Scripted.HANG]), (200, {}, ["{", Scripted.HANG])])
def test_an_answer_without_an_end_is_given_up(server, monkeypatch, answer):
    monkeypatch.setattr(connection_module, "EXCHANGE_S", 0.5)
    server.lists = [answer]

    with (
        Connection(server.access, 2 * PATIENCE_S) as connection,
        pytest.raises(MachineError, match=r"not complete after 0\.5 s"),
    ):
        connection.ask("GET", "/x")


def test_a_watch_whose_head_has_no_end_is_given_up(server, monkeypatch):
    monkeypatch.setattr(connection_module, "EXCHANGE_S", 0.5)
    server.watches = [(100, {}, [Scripted.HANG])]

    with (
        Connection(server.access, 2 * PATIENCE_S) as connection,
        pytest.raises(MachineError, match=r"not complete after 0\.5 s"),
    ):
        next(connection.stream("/x?watch=1"))


def test_a_watch_whose_next_event_has_no_end_is_given_up(server):
    server.watches = [(200, {}, [bookmark("1"), Scripted.TRICKLE])]

    with Connection(server.access, 5.0) as connection:
        events = connection.stream("/x?watch=1")
        assert next(events) == bookmark("1")
        with pytest.raises(MachineError, match=r"no event was complete after 5 s"):
            next(events)


def test_a_list_that_is_left_before_its_end_does_not_spoil_the_next_request(server):
    server.lists = [listing("a", "b"), listing("c")]

    with Connection(server.access) as connection:
        assert names([next(connection.items("/x", {}))]) == ["a"]
        assert names(connection.ask("GET", "/x")["items"]) == ["c"]


def test_the_message_of_a_refusal_is_cut(server):
    message = "x" * 1000
    server.lists = [(500, {}, {"kind": "Status", "message": message})]

    with Connection(server.access) as connection, pytest.raises(RefusalError) as refused:
        connection.ask("GET", "/x")

    assert refused.value.message == message[:300]


def test_a_refusal_without_an_end_takes_the_memory_of_its_bound(server):
    """Millions of small values take thirty times their text once they are parsed."""
    part = "[]," * 20_000
    server.lists = [(500, {}, ["[", *[part] * 500, "[]]"])]
    with Connection(server.access) as connection:
        tracemalloc.start()
        try:
            with pytest.raises(RefusalError, match=r": \[ \[\],"):
                connection.ask("GET", "/x")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert peak < 40 * LARGEST_REFUSAL_BYTES


def test_the_rest_of_a_refusal_is_not_taken_for_the_next_answer():
    made = MadeServer()
    made.answers["/refused"] = (500, {"message": "no", "more": "x" * 2 * LARGEST_REFUSAL_BYTES})
    made.answers["/x"] = {"it": 1}
    host, _, port = made.url.removeprefix("http://").partition(":")

    with Connection(Access(host, int(port), is_tls=False)) as connection:
        with pytest.raises(RefusalError):
            connection.ask("GET", "/refused")
        assert connection.ask("GET", "/x") == {"it": 1}
    made.close()
