"""Writes that need a permit: none is sent without one, or after the time that it gives."""

import threading

import pytest

from temper_core import MachineError
from temper_kube import connection as connection_module
from temper_kube.access import Access
from temper_kube.api_server import ApiServer
from temper_kube.failures import UnreachableError
from tests.kube_client.made_server import DROP, MadeServer

PATH = "/api/v1/nodes/n1"


@pytest.fixture
def server():
    made = MadeServer()
    yield made
    made.close()


def asking(server, permit):
    port = int(server.url.rpartition(":")[2])
    return ApiServer(Access("127.0.0.1", port, is_tls=False), permit=permit)


def refuse():
    raise MachineError("not now")


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_a_write_without_a_permit_is_not_sent_and_a_read_is(server, method):
    server.answers[PATH] = {}

    with asking(server, refuse) as api:
        assert api.get(PATH) == {}
        with pytest.raises(MachineError, match="not now"):
            getattr(api, method)(PATH, {})

    assert [method for method, *_ in server.asked] == ["GET"]


def test_a_write_that_is_repeated_needs_another_permit(server):
    permits = iter([30.0])

    def permit():
        return next(permits, None) or refuse()

    with asking(server, permit) as api:
        server.answers[PATH] = {}
        api.get(PATH)
        server.answers[PATH] = DROP
        with pytest.raises(MachineError, match="not now"):
            api.patch(PATH, {})

    assert [method for method, *_ in server.asked] == ["GET", "PATCH"]


def test_an_answer_is_not_waited_for_after_the_time_of_the_permit(server):
    may_answer = threading.Event()
    server.answers[PATH] = lambda _: may_answer.wait() and DROP

    with asking(server, lambda: 0.05) as api:
        with pytest.raises(UnreachableError, match=r"not complete after 0\.05 s"):
            api.patch(PATH, {})
        may_answer.set()


class Overdue:
    """An alarm that rings before there is a connection."""

    def __init__(self, _seconds, ring):
        ring()

    def cancel(self):
        pass


def test_a_write_whose_connection_is_made_too_late_is_not_sent(server, monkeypatch):
    monkeypatch.setattr(connection_module, "Alarm", Overdue)

    with asking(server, lambda: 5.0) as api, pytest.raises(UnreachableError):
        api.patch(PATH, {})

    assert server.asked == []
