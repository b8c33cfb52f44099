"""``/trace`` and ``/traces`` over HTTP, with a real helper process."""

import base64

import pytest

from temper_plugin_tracer.capture.endpoints import endpoints
from tests.core.server.conftest import TOKEN, start_server
from tests.core.server.fake_view import FakeView

LONG_S = 30.0
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def served(captures, tmp_path):
    """A server with the endpoints of captures."""
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    view = FakeView(served=[("tracer", each) for each in endpoints(captures)])
    running = start_server(view, tmp_path, token)
    yield running
    running.close()


def test_a_capture_is_asked_for_listed_read_in_ranges_and_deleted(served, captures, finish):
    begun = served.unix.post("/trace", json={"seconds": 0.3})
    assert begun.status_code == 202
    capture = begun.json()["id"]
    assert begun.headers["location"] == f"/trace/{capture}"
    assert served.unix.get(f"/trace/{capture}").status_code == 409
    size = finish(captures, capture)["bytes"]
    [entry] = served.tcp.get("/traces").json()["traces"]
    assert (entry["id"], entry["state"], entry["bytes"]) == (capture, "finished", size)
    assert served.tcp.get(f"/trace/{capture}").status_code == 401
    whole = served.tcp.get(f"/trace/{capture}", headers=BEARER)
    assert len(whole.content) == size
    tag = whole.headers["etag"]
    ranged = {"range": "bytes=100-", "if-range": tag, **BEARER}
    rest = served.tcp.get(f"/trace/{capture}", headers=ranged)
    assert rest.status_code == 206
    assert whole.content[:100] + rest.content == whole.content
    part = served.unix.get(f"/trace/{capture}/part", params={"offset": "7"}).json()
    assert base64.b64decode(part["content"]) == whole.content[7:]
    assert served.unix.delete(f"/trace/{capture}").json()["state"] == "deleted"
    assert served.unix.get(f"/trace/{capture}").status_code == 404
    assert served.unix.delete(f"/trace/{capture}").status_code == 404


def test_a_second_request_is_refused_with_who_captures(served):
    assert served.unix.post("/trace", json={"seconds": LONG_S}).status_code == 202
    refused = served.tcp.post("/trace", headers=BEARER, json={})
    assert refused.status_code == 409
    assert refused.json()["held_by"].startswith("socket uid")
    assert 0 < refused.json()["remaining_s"] <= LONG_S
    assert 0 < int(refused.headers["retry-after"]) <= LONG_S + 1


def test_to_delete_a_running_capture_ends_it_and_keeps_it(served, captures, finish):
    capture = served.unix.post("/trace", json={"seconds": LONG_S}).json()["id"]
    ended = served.tcp.delete(f"/trace/{capture}", headers=BEARER)
    assert (ended.status_code, ended.json()["state"]) == (202, "writing")
    entry = finish(captures, capture)
    assert (entry["state"], entry["ended_by"]) == ("finished", "asked")


def test_who_may_not_act_captures_nothing_and_deletes_nothing(served, captures):
    assert served.tcp.post("/trace", json={}).status_code == 401
    assert served.tcp.delete("/trace/20260101-000000-abcd").status_code == 401
    assert captures.documents() == []


@pytest.mark.parametrize(
    "body",
    [
        {"seconds": 31},
        {"seconds": 0},
        {"bytes": 1 << 30},
        {"events": 0},
        {"pod": "a/b", "process": 1},
        {"container": "c"},
        {"pod": "no/such"},
        {"cgroup": "../../etc"},
        {"cgroup": "no/such"},
        {"process": 4194304},
        {"cpus": [-1]},
        {"backend": "none"},
        {"unknown": 1},
        [],
    ],
)
def test_a_request_that_makes_no_sense_is_refused(served, captures, body):
    assert served.unix.post("/trace", json=body).status_code == 400
    assert captures.documents() == []


@pytest.mark.parametrize("name", ["x", "20260101-000000-abcd", "%2e%2e%2fetc"])
def test_a_name_of_no_trace_is_not_found(served, name):
    assert served.unix.get(f"/trace/{name}").status_code == 404
