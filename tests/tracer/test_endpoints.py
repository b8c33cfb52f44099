import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core import WakeWindow
from temper_plugin_tracer.document import window_document

TOKEN = "0123456789abcdef-the-secret"
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
WISHES = st.fixed_dictionaries(
    {}, optional={"seconds": st.floats() | st.integers() | JSON_VALUES, "more": JSON_VALUES}
)


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


def test_whoever_can_read_sees_how_watching_stands_and_the_last_window(agent, fake_watch):
    fake_watch.window = WakeWindow(0.0, 0.25, 20.0, 1e4)

    for client in (agent.tcp, agent.unix):
        document = client.get("/wakes").json()
        assert (document["is_on"], document["until"], document["reason"]) == (False, None, "")
        assert document["window"] == window_document(fake_watch.window)
        assert document["window"]["at"] == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("body", "seconds"),
    [(None, 60.0), ({}, 60.0), ({"seconds": 1}, 1.0), ({"seconds": 3600}, 3600.0)],
)
def test_who_asks_over_the_local_socket_has_it_watched_for_so_long(
    agent, fake_watch, body, seconds
):
    response = agent.unix.put("/wakes", json=body) if body is not None else agent.unix.put("/wakes")

    assert response.status_code == 200
    assert response.json()["is_on"] is True
    assert fake_watch.wanted == [seconds]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the body is not JSON: "),
        (b"[]", "the body must be a JSON object such as "),
        (b"60", "the body must be a JSON object such as "),
        (b"[" * 60_000, "the body is not JSON: "),
        (b'{"seconds": 0}', "seconds: must be >= 1.0"),
        (b'{"seconds": -1e300}', "seconds: must be >= 1.0"),
        (b'{"seconds": 3600.5}', "seconds: must be <= 3600.0"),
        (b'{"seconds": "60"}', "seconds: must be a number, not '60'"),
        (b'{"seconds": true}', "seconds: must be a number, not True"),
        (b'{"seconds": NaN}', "seconds: must be a finite number"),
        (b'{"seconds": 1e999}', "seconds: must be a finite number"),
        (b'{"seconds": null}', "seconds: must be a number, not None"),
        (b'{"minutes": 1}', "unknown key 'minutes'; allowed are seconds"),
    ],
)
def test_what_is_no_number_of_seconds_gives_one_line_that_names_it(
    agent, fake_watch, body, message
):
    response = agent.unix.put("/wakes", content=body)

    assert response.status_code == 400
    assert message in response.json()["error"]
    assert "\n" not in response.json()["error"]
    assert fake_watch.wanted == []


def test_over_tcp_it_takes_the_token(start, fake_watch, token_file):
    agent = start(token_file)

    without = agent.tcp.put("/wakes", json={"seconds": 5})
    with_it = agent.tcp.put(
        "/wakes", json={"seconds": 5}, headers={"authorization": f"Bearer {TOKEN}"}
    )

    assert (without.status_code, with_it.status_code) == (401, 200)
    assert fake_watch.wanted == [5.0]


def test_where_no_token_is_set_tcp_may_only_look(agent, fake_watch):
    assert agent.tcp.put("/wakes", json={"seconds": 5}).status_code == 403
    assert agent.tcp.get("/wakes").status_code == 200
    assert fake_watch.wanted == []


def test_both_are_described_with_the_body_that_is_taken(agent):
    document = agent.tcp.get("/openapi.json").json()

    described = document["paths"]["/wakes"]
    assert described["get"]["operationId"] == "GetWakes"
    assert described["put"]["operationId"] == "WatchWakes"
    assert described["put"]["security"] == [{"token": []}]
    [body] = described["put"]["requestBody"]["content"].values()
    assert body["schema"]["properties"]["seconds"] == {
        "type": "number",
        "minimum": 1,
        "maximum": 3600,
        "default": 60,
    }


@given(st.one_of(WISHES, JSON_VALUES).map(lambda value: json.dumps(value).encode()) | st.binary())
@settings(max_examples=80)
def test_no_body_whatever_is_an_error_of_the_server(lasting_agent, lasting_watch, body):
    response = lasting_agent.unix.put("/wakes", content=body)

    assert response.status_code in {200, 400}
    assert set(response.json()) >= ({"error"} if response.status_code == 400 else {"is_on"})
    assert all(1 <= seconds <= 3600 for seconds in lasting_watch.wanted)
