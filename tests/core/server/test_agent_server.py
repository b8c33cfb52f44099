import signal
import socket
import time
from pathlib import Path

import httpx2
import pytest
from structlog.testing import capture_logs

from temper_core.errors import MachineError
from temper_core.server.agent_server import AgentServer
from temper_core.settings.models import ServerSettings

PATIENCE_S = 30.0


def a_server(view, listen, path):
    return AgentServer(view, ServerSettings(listen, str(path)))


def test_a_taken_port_without_a_local_socket_is_one_line_and_leaves_nothing(view, server_threads):
    with socket.create_server(("127.0.0.1", 0)) as other:
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        server = AgentServer(view, ServerSettings(listen, ""))

        with pytest.raises(MachineError, match="another process does") as caught:
            server.start()

    assert "\n" not in str(caught.value)
    assert server_threads() == []


def test_who_takes_the_port_does_not_keep_the_agent_from_starting(
    view, tmp_path, server_threads, monkeypatch
):
    monkeypatch.setattr("temper_core.server.serving.BIND_AGAIN_S", 0.05)
    path = tmp_path / "a.sock"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = a_server(view, f"127.0.0.1:{port}", path)
        with capture_logs() as logs:
            server.start()
        unserved = (server.address, server.defect)
        with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path))) as local:
            health = local.get("http://agent/healthz").status_code
    # The port is free now, and the agent takes it.
    deadline = time.monotonic() + PATIENCE_S
    while server.address is None and time.monotonic() < deadline:
        time.sleep(0.02)
    served = httpx2.get(f"http://127.0.0.1:{port}/healthz").status_code
    defect = server.defect
    server.stop()

    assert (unserved[0], health, served, defect) == (None, 200, 200, "")
    assert unserved[1].startswith(f"server: cannot listen on 127.0.0.1:{port}: another process")
    assert [entry["event"] for entry in logs] == ["tcp_not_served"]
    assert server_threads() == []


def test_an_agent_that_waits_for_its_port_stops(view, tmp_path, server_threads, monkeypatch):
    monkeypatch.setattr("temper_core.server.serving.BIND_AGAIN_S", 3_600.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = a_server(view, f"127.0.0.1:{other.getsockname()[1]}", tmp_path / "a.sock")
        server.start()

        server.stop()

    assert server_threads() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("listen", ["203.0.113.1:0", f"{'a' * 70}.b:0"])
def test_an_address_that_is_not_here_is_one_line(view, tmp_path, listen):
    with pytest.raises(MachineError, match="cannot listen on") as caught:
        a_server(view, listen, tmp_path / "a.sock").start()

    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_stopping_leaves_no_socket_no_thread_and_no_port(start, server_threads):
    agent = start()
    address = agent.server.address
    paths = ["/healthz", "/metrics", "/observe"]
    statuses = [
        client.get(path).status_code for client in (agent.tcp, agent.unix) for path in paths
    ]

    agent.server.stop()

    assert statuses == [200] * 6
    assert not Path(agent.settings.socket).exists()
    assert server_threads() == []
    socket.create_server((address.host, address.port)).close()


def test_stopping_twice_or_before_the_start_does_nothing(view, tmp_path, start):
    never = a_server(view, "127.0.0.1:0", tmp_path / "never.sock")
    agent = start()

    never.stop()
    agent.server.stop()
    agent.server.stop()

    assert agent.server.address is None


def test_a_server_can_be_started_again(start):
    agent = start()
    agent.server.stop()

    agent.server.start()

    assert agent.unix.get("/healthz").status_code == 200


def test_an_ipv6_address_is_served(view, tmp_path):
    server = a_server(view, "[::1]:0", tmp_path / "a.sock")
    try:
        server.start()
    except MachineError:
        pytest.skip("this machine has no IPv6")

    with socket.create_connection((server.address.host, server.address.port)) as raw:
        raw.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = raw.recv(100)
    server.stop()

    assert answer.startswith(b"HTTP/1.1 200")


def test_an_empty_address_serves_the_socket_only(view, tmp_path):
    server = a_server(view, "", tmp_path / "a.sock")
    server.start()

    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(tmp_path / "a.sock"))
        raw.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = raw.recv(100)
    address = server.address
    server.stop()

    assert answer.startswith(b"HTTP/1.1 200")
    assert address is None


def test_an_empty_socket_serves_the_address_only(view):
    server = AgentServer(view, ServerSettings("127.0.0.1:0", ""))

    with capture_logs() as logs:
        server.start()
    with socket.create_connection((server.address.host, server.address.port)) as raw:
        raw.sendall(b"PUT /safe-mode HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: raw.recv(1000), b""))
    server.stop()

    assert logs == []
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"set [server] socket, or give [server] a token_file" in answer


def test_a_socket_that_was_left_over_is_replaced(view, tmp_path):
    left_over = socket.socket(socket.AF_UNIX)
    left_over.bind(str(tmp_path / "a.sock"))
    left_over.close()
    server = a_server(view, "127.0.0.1:0", tmp_path / "a.sock")

    server.start()
    server.stop()

    assert list(tmp_path.iterdir()) == []


def test_a_second_agent_on_the_same_socket_is_refused_and_the_first_serves_on(start, view):
    agent = start()

    with pytest.raises(MachineError, match="another agent answers on"):
        a_server(view, "127.0.0.1:0", agent.settings.socket).start()

    assert agent.unix.get("/healthz").status_code == 200


def test_a_file_in_the_sockets_place_is_left_alone(view, tmp_path):
    precious = tmp_path / "a.sock"
    precious.write_text("precious")

    with pytest.raises(MachineError, match="is not a socket; remove it"):
        a_server(view, "127.0.0.1:0", precious).start()

    assert precious.read_text() == "precious"


def test_another_processs_socket_is_not_removed_at_the_stop(start):
    agent = start()
    path = Path(agent.settings.socket)
    path.rename(path.with_name("moved"))
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))

        agent.server.stop()

    assert path.exists()


@pytest.mark.parametrize("folder", ["x" * 200, "file/below"])
def test_an_agent_that_cannot_have_its_socket_still_serves_tcp_and_says_so(view, tmp_path, folder):
    (tmp_path / "file").touch()
    server = a_server(view, "127.0.0.1:0", tmp_path / folder / "a.sock")

    with capture_logs() as logs:
        server.start()
    with socket.create_connection((server.address.host, server.address.port)) as raw:
        raw.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = raw.recv(100)
    server.stop()

    assert answer.startswith(b"HTTP/1.1 200")
    assert [entry["event"] for entry in logs] == ["local_socket_not_served"]


def test_an_agent_that_can_have_no_socket_at_all_does_not_start(view, tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(MachineError, match=r"see \[server\] socket"):
        a_server(view, "", tmp_path / "file" / "a.sock").start()


def test_a_view_that_fails_at_the_start_leaves_nothing(view, tmp_path, server_threads, monkeypatch):
    monkeypatch.setattr(type(view), "endpoints", lambda _: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        a_server(view, "127.0.0.1:0", tmp_path / "a.sock").start()

    assert list(tmp_path.iterdir()) == []
    assert server_threads() == []


def test_the_server_takes_no_signal_from_the_agent(start):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    start()

    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
