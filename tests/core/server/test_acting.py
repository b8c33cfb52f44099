import stat
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from temper_core.records.endpoints import Endpoint
from temper_core.safe_mode import patient_writer
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.safe_mode.state_file import StateFile
from temper_core.server.endpoints import MOST_REQUESTERS, MOST_REQUESTERS_OVER_TCP
from tests.patience import PATIENCE_S

TOKEN = "0123456789abcdef-the-secret"
WISH = {"requested": True, "requester": "alice", "reason": "benchmark"}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_the_local_socket_may_act_without_a_token(agent, view):
    response = agent.unix.put("/safe-mode", json=WISH)

    assert response.status_code == 200
    assert response.json()["requests"] == {"alice": {"reason": "benchmark", "since": 1.0}}
    assert set(view.requests) == {"alice"}


def test_tcp_may_not_act_where_no_token_is_set_and_names_the_remedy(agent, view):
    response = agent.tcp.put("/safe-mode", json=WISH, headers=bearer(TOKEN))

    assert response.status_code == 403
    assert agent.settings.socket in response.json()["error"]
    assert "token_file" in response.json()["error"]
    assert view.requests == {}


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN} {TOKEN}",
    ],
)
def test_tcp_may_not_act_without_the_right_token(start, view, token_file, authorization):
    agent = start(token_file)
    headers = {} if authorization is None else {"authorization": authorization}

    response = agent.tcp.put("/safe-mode", json=WISH, headers=headers)

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in response.text
    assert view.requests == {}


def test_a_token_that_is_not_ascii_is_only_wrong(start, token_file):
    agent = start(token_file)

    response = agent.tcp.put("/safe-mode", json=WISH, headers=[(b"authorization", b"Bearer \xff")])

    assert response.status_code == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_tcp_may_act_with_the_right_token(start, view, token_file, scheme):
    agent = start(token_file)

    response = agent.tcp.put(
        "/safe-mode", json=WISH, headers={"authorization": f"{scheme} {TOKEN}"}
    )

    assert response.status_code == 200
    assert set(view.requests) == {"alice"}


def test_a_token_that_is_replaced_counts_at_once(start, token_file):
    agent = start(token_file)
    token_file.write_text("another-secret-of-good-length")

    old = agent.tcp.put("/safe-mode", json=WISH, headers=bearer(TOKEN))
    new = agent.tcp.put("/safe-mode", json=WISH, headers=bearer("another-secret-of-good-length"))

    assert (old.status_code, new.status_code) == (401, 200)


@pytest.mark.parametrize("content", ["", "\n", "short", "x" * 5000])
def test_a_token_file_without_a_usable_token_lets_nobody_act(start, token_file, content):
    token_file.write_text(content)
    with capture_logs() as logs:
        agent = start(token_file)

    response = agent.tcp.put("/safe-mode", json=WISH, headers=bearer(content.strip() or "x"))

    assert response.status_code == 403
    assert "must hold 16 to 4096 characters" in response.json()["error"]
    assert [entry["event"] for entry in logs] == ["token_not_usable"]


def test_a_missing_token_file_is_warned_of_and_lets_nobody_act(start, tmp_path):
    with capture_logs() as logs:
        agent = start(tmp_path / "absent")

    response = agent.tcp.put("/safe-mode", json=WISH, headers=bearer("x"))

    assert response.status_code == 403
    assert "No such file" in response.json()["error"]
    assert [entry["event"] for entry in logs] == ["token_not_usable"]


def test_a_token_file_that_others_can_read_is_warned_of_without_the_secret(start, token_file):
    token_file.chmod(0o644)

    with capture_logs() as logs:
        start(token_file)

    assert [entry["event"] for entry in logs] == ["token_file_readable_by_others"]
    assert TOKEN not in str(logs)


def test_the_local_socket_is_for_its_owner_only(agent):
    path = Path(agent.settings.socket)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_several_requesters_are_remembered_and_withdrawn_separately(agent):
    for name in ("alice", "bob"):
        agent.unix.put("/safe-mode", json={"requested": True, "requester": name})

    withdrawn = agent.unix.put("/safe-mode", json={"requested": False, "requester": "alice"}).json()
    again = agent.unix.put("/safe-mode", json={"requested": False, "requester": "alice"}).json()

    assert withdrawn["released"] is True
    assert set(withdrawn["requests"]) == {"bob"}
    assert again["released"] is False
    assert set(agent.tcp.get("/safe-mode").json()["requests"]) == {"bob"}


def test_who_names_nobody_asks_by_the_way_he_came(start, view, token_file):
    agent = start(token_file)

    agent.unix.put("/safe-mode", json={"requested": True})
    agent.tcp.put("/safe-mode", json={"requested": True}, headers=bearer(TOKEN))

    assert set(view.requests) == {"socket", "token"}


@pytest.fixture
def slow(view):
    """Make every ``/explain`` wait until the test has ended."""
    view.slow = threading.Event()
    yield view.slow
    view.slow.set()


def ask_without_reading(stack, agent, request, times):
    for _ in range(times):
        stack.enter_context(agent.connect()).sendall(request)
    assert agent.tcp.get("/healthz").status_code == 200


def test_safe_mode_over_either_way_is_asked_for_behind_no_slow_reader(
    start, view, token_file, slow
):
    agent = start(token_file)
    with ExitStack() as stack:
        ask_without_reading(stack, agent, b"GET /explain HTTP/1.1\r\nhost: a\r\n\r\n", 50)

        local = agent.unix.put("/safe-mode", json=WISH)
        tcp = agent.tcp.put("/safe-mode", json={"requested": True}, headers=bearer(TOKEN))
        slow.set()

    assert (local.status_code, tcp.status_code) == (200, 200)
    assert set(view.requests) == {"alice", "token"}


def test_reading_over_the_local_socket_waits_for_no_reader_over_tcp(start, slow):
    agent = start()
    with ExitStack() as stack:
        ask_without_reading(stack, agent, b"GET /explain HTTP/1.1\r\nhost: a\r\n\r\n", 50)

        status = agent.unix.get("/safe-mode").status_code
        slow.set()

    assert status == 200


def test_a_plugins_endpoint_that_hangs_while_it_acts_does_not_delay_safe_mode(start, view):
    act = Endpoint("act", "POST", "/act", "Act.", lambda _: {}, acts=True)
    view.served = [("hung", act)]
    agent = start()
    with ExitStack() as stack:
        hanging = stack.enter_context(agent.connect_locally())
        hanging.sendall(b"POST /act HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n")
        agent.unix.get("/healthz")

        status = agent.unix.put("/safe-mode", json=WISH).status_code
        view.release.set()

    assert status == 200


def test_a_disk_that_hangs_delays_no_request_behind_a_withdrawal(
    start, view, tmp_path, monkeypatch
):
    monkeypatch.setattr(patient_writer, "WAIT_S", 0.05)
    requests = SafeModeRequests(tmp_path / "safe-mode", tmp_path / "requests.json")
    requests.add("alice", "")
    monkeypatch.setattr(StateFile, "write", lambda *_: view.release.wait(PATIENCE_S))
    view.request_safe_mode, view.release_safe_mode = requests.add, requests.withdraw
    view.safe_mode_requests = lambda: {name: {} for name in requests.active()}
    view.unkept_requests = lambda: requests.unkept
    local = start().unix

    local.put("/safe-mode", json={"requested": False, "requester": "alice"})
    answer = local.put("/safe-mode", json={"requested": True, "requester": "bob"}).json()

    assert set(answer["requests"]) == {"bob"}
    assert "the disk has not answered" in answer["unkept"]


@pytest.mark.parametrize(
    ("way", "most"), [("tcp", MOST_REQUESTERS_OVER_TCP), ("unix", MOST_REQUESTERS)]
)
def test_requesters_of_safe_mode_are_bounded_and_known_ones_still_act(
    start, view, token_file, way, most
):
    agent = start(token_file)
    client, head = getattr(agent, way), {"authorization": f"Bearer {TOKEN}"}
    view.requests.update({f"r{n}": {"reason": "", "since": 1.0} for n in range(most - 1)})

    def put(name, *, requested=True):
        body = {"requested": requested, "requester": name}
        return client.put("/safe-mode", json=body, headers=head).status_code

    statuses = [put("last"), put("one-more"), put("r7"), put("last", requested=False), put("new")]

    assert statuses == [200, 503, 200, 200, 200]
    assert "one-more" not in view.requests


def test_an_unusable_token_file_that_others_read_is_warned_of_once(start, token_file):
    token_file.write_text("short\n")
    token_file.chmod(0o644)
    agent, head = start(token_file), {"authorization": "Bearer x"}

    with capture_logs() as logs:
        statuses = {agent.tcp.get("/healthz", headers=head).status_code for _ in range(20)}

    warnings = [log["event"] for log in logs if log["event"] == "token_file_readable_by_others"]
    assert statuses == {200}
    assert len(warnings) <= 1
