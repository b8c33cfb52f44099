import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.server.agent_server import BOUNDS

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "requested": st.booleans() | JSON_VALUES,
        "requester": st.from_regex(r"[A-Za-z0-9._@:-]{1,64}", fullmatch=True) | JSON_VALUES,
        "reason": JSON_VALUES,
        "more": JSON_VALUES,
    },
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the body is not JSON: "),
        (b"\xff\xfe", "the body is not UTF-8 text (byte 0)"),
        (b"", "the body must be a JSON object such as "),
        (b"[]", "the body must be a JSON object such as "),
        (b"[" * 60_000, "the body is not JSON: "),
        (b"{}", "requested: is required"),
        (b'{"requested": 1}', "requested: must be true or false, not 1"),
        (b'{"requested": "yes"}', "requested: must be true or false, not 'yes'"),
        (b'{"requested": true, "until": 5}', "unknown key 'until'; allowed are reason, "),
        (b'{"requested": true, "requester": ""}', "requester: must be 1 to 64 letters"),
        (b'{"requested": true, "requester": "a b"}', "requester: must be 1 to 64 letters"),
        (b'{"requested": true, "requester": "a\\n"}', "requester: must be 1 to 64 letters"),
        (b'{"requested": true, "requester": "file"}', "requester: 'file' is reserved for"),
        (b'{"requested": true, "reason": "a\\u001b[2J"}', "reason: must be one line without"),
        (b'{"requested": true, "reason": "a\\nb"}', "reason: must be one line without"),
        (b'{"requested": true, "reason": "\\ud800"}', "reason: must be one line without"),
    ],
)
def test_a_body_that_is_no_request_gives_one_line_that_names_the_field(agent, view, body, message):
    response = agent.unix.put("/safe-mode", content=body)

    assert response.status_code == 400
    assert message in response.json()["error"]
    assert "\n" not in response.json()["error"]
    assert len(response.json()["error"]) < 1000
    assert view.requests == {}


def test_a_reason_that_is_too_long_is_refused_by_its_length(agent):
    response = agent.unix.put("/safe-mode", json={"requested": True, "reason": "x" * 501})

    assert response.json()["error"] == "reason: must be at most 500 characters, not 501"


@pytest.mark.parametrize("headers", [{}, {"transfer-encoding": "chunked"}])
def test_a_body_that_is_too_large_is_refused_however_it_comes(agent, headers):
    body = b'{"reason": "' + b"x" * 70_000 + b'"}'
    content = iter([body[:40_000], body[40_000:]]) if headers else body

    response = agent.unix.put("/safe-mode", content=content)

    assert response.status_code == 413
    assert response.json() == {"error": "the body is larger than 65536 bytes"}


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/healthz", {"x-large": "x" * 40_000}),
        ("/explain?pod=" + "x" * 40_000, {}),
        ("/metrics", {f"x-{n}": "x" * 100 for n in range(300)}),
    ],
)
def test_a_head_that_is_too_large_is_refused_and_the_next_client_is_served(agent, path, headers):
    response = agent.tcp.get(path, headers=headers)

    assert response.status_code == 431
    assert response.json()["error"].endswith("larger than 16384 bytes")
    assert agent.tcp.get("/healthz").status_code == 200


def test_a_head_that_never_ends_is_cut_off(agent):
    with agent.connect() as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nx-endless: " + b"x" * 400_000)
        answer = read_to_the_end(raw)

    head, body = answer.split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert json.loads(body)["error"].endswith("larger than 16384 bytes")


def test_the_refusal_of_a_large_head_reaches_a_client_that_is_still_sending(agent):
    for _ in range(20):
        with agent.connect() as raw:
            raw.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\nx-large: " + b"x" * 17_000)
            time.sleep(0.005)
            raw.sendall(b"x" * 20_000 + b"\r\n\r\n")
            assert read_to_the_end(raw).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 this is no HTTP \r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"PUT /safe-mode HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n",
    ],
)
def test_what_is_no_http_is_refused_in_json_and_the_next_client_is_served(agent, sent):
    with agent.connect() as raw:
        raw.sendall(sent)
        answer = read_to_the_end(raw)

    head, body = answer.split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"content-type: application/json" in head
    assert b"server: temper/" in head
    assert json.loads(body) == {"error": "not a valid HTTP/1.1 request"}
    assert agent.tcp.get("/healthz").status_code == 200


def test_a_long_path_that_nobody_has_is_not_found(agent):
    response = agent.tcp.get("/" + "x" * 10_000)

    assert response.status_code == 404
    assert len(response.json()["error"]) < 1000


def test_a_client_that_is_too_slow_is_hung_up_on(start):
    agent = start(bounds=evolve(BOUNDS, head_s=0.3))
    with agent.connect() as silent, agent.connect() as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\n")

        ends = [read_to_the_end(silent), read_to_the_end(slow)]

    assert ends == [b"", b""]


def test_a_second_request_on_a_connection_must_not_be_slow_either(start):
    agent = start(bounds=evolve(BOUNDS, head_s=0.3))
    with agent.connect() as raw:
        raw.sendall(b"HEAD /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        answer = raw.recv(2000)
        raw.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\n")

        end = read_to_the_end(raw)

    assert answer.startswith(b"HTTP/1.1 200")
    assert end == b""


def test_a_connection_that_was_answered_may_rest_for_longer_than_a_head_may_take(start):
    agent = start(bounds=evolve(BOUNDS, head_s=0.1))
    with agent.connect() as raw:
        raw.sendall(b"HEAD /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        first = raw.recv(2000)
        time.sleep(0.4)
        raw.sendall(b"HEAD /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        second = raw.recv(2000)

    assert first.startswith(b"HTTP/1.1 200")
    assert second.startswith(b"HTTP/1.1 200")


def test_a_head_that_begins_with_the_request_before_it_must_not_be_slow_either(start):
    agent = start(bounds=evolve(BOUNDS, head_s=0.3))
    with agent.connect() as raw:
        raw.sendall(b"HEAD /healthz HTTP/1.1\r\nhost: a\r\n\r\nGET /healthz HTTP/1.1\r\nhost:")

        answer = read_to_the_end(raw)

    assert answer.startswith(b"HTTP/1.1 200")


def test_an_answer_may_take_longer_than_a_head(start, view):
    view.slow = threading.Event()
    agent = start(bounds=evolve(BOUNDS, head_s=0.1))
    with agent.connect() as quick, agent.connect() as silent:
        quick.sendall(b"GET /explain HTTP/1.1\r\nhost: a\r\n\r\n")
        assert read_to_the_end(silent) == b""

        view.slow.set()
        answer = quick.recv(2000)

    assert answer.startswith(b"HTTP/1.1 200")


def test_an_answer_that_does_not_come_ends_the_connection(start, view):
    view.slow = threading.Event()
    agent = start(bounds=evolve(BOUNDS, exchange_s=0.3))
    with agent.connect() as raw:
        raw.sendall(b"GET /explain HTTP/1.1\r\nhost: a\r\n\r\n")

        end = read_to_the_end(raw)
    view.slow.set()

    assert end == b""


def read_to_the_end(raw: socket.socket) -> bytes:
    read = b""
    with suppress(ConnectionResetError):
        while piece := raw.recv(1000):
            read += piece
    return read


def test_a_client_that_hangs_up_half_way_leaves_the_server_well(agent):
    with agent.connect() as raw:
        raw.sendall(b"PUT /safe-mode HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{")
    with agent.connect() as raw:
        raw.sendall(b"GET /observe HTTP/1.1\r\nhost: a\r\n\r\n")

    assert agent.tcp.get("/healthz").status_code == 200


def test_idle_connections_keep_nobody_out(agent):
    idle = [agent.connect() for _ in range(60)]

    status = agent.tcp.get("/healthz").status_code

    for connection in idle:
        connection.close()
    assert status == 200


def test_many_scrapes_at_once_are_all_answered(agent):
    with ThreadPoolExecutor(16) as pool:
        paths = ["/metrics", "/observe", "/healthz", "/plugins"] * 12
        statuses = list(pool.map(lambda path: agent.tcp.get(path).status_code, paths))

    assert statuses == [200] * 48


def test_a_view_that_changes_under_a_scrape_breaks_none(agent, view, fakes):
    done = threading.Event()

    def change() -> None:
        while not done.wait(0.001):
            view.last = fakes.a_snapshot()

    changing = threading.Thread(target=change)
    changing.start()
    statuses = {agent.tcp.get(path).status_code for path in ["/metrics", "/observe"] * 10}
    done.set()
    changing.join()

    assert statuses == {200}


@given(st.one_of(WISHES, JSON_VALUES).map(lambda value: json.dumps(value).encode()) | st.binary())
@settings(max_examples=80)
def test_no_body_whatever_is_an_error_of_the_server(lasting_agent, body):
    response = lasting_agent.unix.put("/safe-mode", content=body)

    assert response.status_code in {200, 400}
    assert set(response.json()) >= ({"error"} if response.status_code == 400 else {"requests"})


@given(
    st.sampled_from(["/observe", "/explain", "/metrics", "/config", "/safe-mode", "/nowhere"]),
    st.dictionaries(st.sampled_from(["top", "pod", "x"]) | st.text(max_size=9), st.text()),
)
def test_no_query_whatever_is_an_error_of_the_server(lasting_agent, path, query):
    response = lasting_agent.tcp.get(path, params=query)

    assert response.status_code in {200, 400, 404}


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_no_accept_header_whatever_is_an_error_of_the_server(lasting_agent, accept):
    response = lasting_agent.tcp.get("/metrics", headers={"accept": accept.strip()})

    assert response.status_code in {200, 400}
