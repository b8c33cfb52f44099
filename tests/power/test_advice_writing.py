"""Advice in WorkloadProfiles, of which the API server refuses to change one."""

import pytest
from structlog.testing import capture_logs

from temper_kube.failures import NotFoundError, RefusalError, UnreachableError
from temper_plugin_power.controller.advice_writing import AdviceWriter
from temper_plugin_power.controller.stored_profiles import stored_profile

TOO_LARGE = RefusalError(500, "etcdserver: request is too large")
GONE = NotFoundError("/a", "not found")


class Server:
    """An API server that raises *error* for the profile ``a``."""

    def __init__(self, error):
        self.error = error
        self.patched = []

    def patch(self, path, _):
        if path.endswith("/a/status"):
            raise self.error
        self.patched.append(path.split("/")[-2])
        return {}


def advised(name):
    return stored_profile(
        {
            "metadata": {"namespace": "shop", "name": name},
            "status": {"rescheduleRecommended": True},
        }
    )


@pytest.mark.parametrize("error", [TOO_LARGE, GONE])
def test_a_profile_that_cannot_be_written_stops_no_other(error):
    server = Server(error)

    AdviceWriter(server, lambda _: None).write((), [advised("a"), advised("b")])

    assert server.patched == ["b"]


def test_a_server_that_is_away_is_asked_once():
    server = Server(UnreachableError("no answer"))

    AdviceWriter(server, lambda _: None).write((), [advised("a"), advised("b")])

    assert server.patched == []


def test_what_is_not_written_in_time_is_left_to_the_next_cycle():
    server, times = Server(None), iter([0.0, 1.0, 19.0, 20.0])

    AdviceWriter(server, lambda _: None, lambda: next(times)).write((), map(advised, "bcdef"))

    assert server.patched == ["b", "c"]


def test_the_author_of_such_a_profile_fills_no_log():
    writer = AdviceWriter(Server(TOO_LARGE), lambda _: None)

    with capture_logs() as logs:
        for _ in range(100):
            writer.write((), [advised("a")])

    assert len(logs) == 20
