"""``/flight-recorder`` over HTTP, with a real helper process."""

import pytest

from temper_plugin_tracer.capture.endpoints import endpoints
from temper_plugin_tracer.capture.flight_endpoints import flight_endpoints
from temper_plugin_tracer.capture.flight_recorder import FlightRecorder
from tests.core.server.conftest import TOKEN, start_server
from tests.core.server.fake_view import FakeView
from tests.tracer.capture.conftest import until

LONG_S = 30.0
PATH = "/flight-recorder"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def served(captures, tmp_path):
    """A server with the endpoints of captures and of the flight recorder."""
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    every = (*endpoints(captures), *flight_endpoints(FlightRecorder(captures)))
    running = start_server(FakeView(served=[("tracer", each) for each in every]), tmp_path, token)
    yield running
    running.close()


def test_it_is_started_looked_at_and_its_trace_is_read(served, captures, finish):
    assert served.tcp.get(PATH).json() == {"is_on": False}
    started = served.unix.post(PATH, json={"seconds": LONG_S, "kept_seconds": 1})
    assert (started.status_code, started.headers["location"]) == (202, PATH)
    until(lambda: served.tcp.get(PATH).json().get("events"))
    refused = served.unix.post("/trace", json={})
    assert (refused.status_code, refused.json()["id"]) == (409, started.json()["id"])
    assert 0 < int(refused.headers["retry-after"]) <= LONG_S + 1
    assert served.unix.post(PATH, json={}).status_code == 409
    written = served.tcp.post(f"{PATH}/dump", headers=BEARER)
    assert (written.status_code, written.json()["state"]) == (202, "writing")
    entry = finish(captures, started.json()["id"])
    assert entry["cause"].startswith("token")
    whole = served.unix.get(written.headers["location"])
    assert len(whole.content) == entry["bytes"]


def test_it_is_stopped(served, captures):
    assert served.unix.post(PATH, json={"seconds": LONG_S}).status_code == 202
    assert served.unix.delete(PATH).json() == {"is_on": False}
    assert captures.documents() == []


def test_what_is_off_is_neither_written_nor_stopped(served):
    assert served.unix.post(f"{PATH}/dump").status_code == 404
    assert served.unix.delete(PATH).status_code == 404


def test_who_may_not_act_is_refused(served, captures):
    assert served.tcp.post(PATH, json={}).status_code == 401
    assert served.tcp.post(f"{PATH}/dump").status_code == 401
    assert served.tcp.delete(PATH).status_code == 401
    assert captures.documents() == []


@pytest.mark.parametrize(
    "body",
    [
        {"seconds": 86401},
        {"seconds": 0},
        {"kept_seconds": 31},
        {"cpu_ratio": 0},
        {"cpu_ratio": 1.5},
        {"violations": [1]},
        {"violations": "rt_hog"},
        {"violations": ["a"] * 65},
        {"pod": "a/b", "process": 1},
        {"pod": "no/such"},
        {"unknown": 1},
        [],
    ],
)
def test_a_request_that_makes_no_sense_is_refused(served, captures, body):
    assert served.unix.post(PATH, json=body).status_code == 400
    assert captures.documents() == []
