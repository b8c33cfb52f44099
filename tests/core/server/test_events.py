"""What happened, asked over real sockets."""

import json

import pytest


@pytest.fixture
def happened(view):
    view.happened.record("agent_started")
    view.happened.record("safe_mode_requested", "cli", "a\x1b[31m drill")
    return view.happened


def test_events_are_listed_on_both_sockets(agent, happened):
    local, tcp = agent.unix.get("/events").json(), agent.tcp.get("/events?since=1").json()

    assert [event["number"] for event in local["events"]] == [1, 2]
    assert [event["reason"] for event in tcp["events"]] == ["a [31m drill"]
    assert (tcp["last"], tcp["schema_version"]) == (happened.last, 1)


@pytest.mark.usefixtures("happened")
@pytest.mark.parametrize("query", ["since=x", "kind=A%00", "limit=0", "unknown=1"])
def test_a_query_that_makes_no_sense_is_a_bad_request(agent, query):
    response = agent.tcp.get(f"/events?{query}")

    assert response.status_code == 400
    assert query.split("=")[0] in response.json()["error"]


def test_kinds_and_the_stream_are_in_the_description_of_the_interface(agent):
    kinds = agent.unix.get("/events/kinds").json()["kinds"]
    paths = agent.unix.get("/openapi.json").json()["paths"]

    assert "safe_mode_entered" in [kind["name"] for kind in kinds]
    assert {"/events", "/events/kinds", "/events/stream"} <= set(paths)
    assert "since" in json.dumps(paths["/events"])


def test_nobody_changes_what_happened(agent):
    assert [agent.unix.request(method, "/events").status_code for method in ("PUT", "DELETE")] == [
        405,
        405,
    ]
