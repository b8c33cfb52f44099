import os
import pwd
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress

import pytest

import temper_core
from temper_core.cli.safe_mode_round import look_at
from temper_core.client import NoAgentError, ask_agent, stream_agent
from temper_core.errors import InputError, MachineError


@pytest.fixture
def stranger():
    """Another program on a TCP port, which answers every request with what the test sets."""
    listening = socket.create_server(("127.0.0.1", 0))
    answers = [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"]

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(answers[0])

    serving = threading.Thread(target=serve)
    serving.start()
    yield listening.getsockname()[1], answers
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    serving.join()


@pytest.mark.usefixtures("agent")
def test_the_agent_is_asked_over_its_socket(node):
    assert ask_agent("/healthz", settings=node.settings)["alive"] is True
    assert ask_agent("/observe", {"top": "1"}, settings=node.settings)["node"] == "node-a"


@pytest.mark.usefixtures("agent")
def test_what_is_no_json_comes_as_text(node):
    assert "temper_build_info" in ask_agent("/metrics", settings=node.settings)


@pytest.mark.usefixtures("tcp_agent")
def test_tcp_is_tried_where_the_socket_does_not_answer(node):
    assert ask_agent("/healthz", settings=node.settings)["alive"] is True


@pytest.mark.usefixtures("tcp_agent")
def test_acting_over_tcp_brings_the_token(node, view):
    body = {"requested": True, "requester": "alice"}

    answer = ask_agent("/safe-mode", method="PUT", body=body, settings=node.settings)

    assert set(answer["requests"]) == set(view.requests) == {"alice"}


def test_acting_over_tcp_with_a_token_that_is_gone_tells_what_is_missing(
    node, tcp_agent, tmp_path, view
):
    (tmp_path / "token").unlink()

    refusal = r"the agent answers: requests over TCP may not act: .*token"
    with pytest.raises(InputError, match=refusal):
        ask_agent("/safe-mode", method="PUT", body={"requested": True}, settings=node.settings)

    assert view.requests == {}
    assert tcp_agent.address is not None


def test_a_refusal_over_tcp_names_a_socket_that_may_have_carried_out_the_request(
    node, tcp_agent, tmp_path, view, monkeypatch
):
    monkeypatch.setattr("temper_core.client.TIMEOUT_S", 0.3)
    (tmp_path / "token").unlink()
    server = node.settings.server
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(server.socket)
        silent.listen()

        why = rf"{server.socket} \(no answer .*\) may have carried it out; over TCP the agent"
        with pytest.raises(MachineError, match=why):
            ask_agent("/safe-mode", method="PUT", body={"requested": True}, settings=node.settings)
        with pytest.raises(InputError, match=r"^the agent answers"):
            ask_agent("/observe", {"top": "none"}, settings=node.settings)

    assert view.requests == {}
    assert tcp_agent.address is not None


IMPOSTOR = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
connection, _ = listening.accept()
print(connection.recv(4096), file=sys.stderr, flush=True)
connection.sendall(b"HTTP/1.1 200 OK\\r\\nserver: temper/9\\r\\ncontent-length: 2\\r\\n\\r\\nhi")
"""


@pytest.fixture
def impostor(tmp_path):
    """Return a function that listens as another user, and answers one request as an agent would.

    The function returns the port and the file that gets the request.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can start a process of another user")
    with ExitStack() as ending:

        def start(uid):
            request = tmp_path / "request"
            kept = ending.enter_context(request.open("wb"))
            listening = ending.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", IMPOSTOR, str(uid)], stdout=subprocess.PIPE, stderr=kept
                )
            )
            ending.callback(listening.kill)
            return int(listening.stdout.readline()), request

        yield start


@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text("0123456789abcdef-the-secret")
    path.chmod(0o600)
    return path


def put_safe_mode(node):
    body = {"requested": True, "requester": "alice"}
    return ask_agent("/safe-mode", method="PUT", body=body, settings=node.settings)


def test_a_listener_of_another_user_gets_neither_the_token_nor_the_request(node, impostor, token):
    nobody = pwd.getpwnam("nobody").pw_uid
    port, request = impostor(nobody)
    node.write_settings(f"127.0.0.1:{port}", str(token), str(node.folder / "absent.sock"))

    with pytest.raises(NoAgentError, match=f"user {nobody} listens there"):
        put_safe_mode(node)

    assert request.read_bytes() == b""


@pytest.mark.parametrize("token", ["", "absent"])
def test_a_listener_of_another_user_gets_no_request_to_act_without_a_token(node, impostor, token):
    nobody = pwd.getpwnam("nobody").pw_uid
    port, request = impostor(nobody)
    token_file = str(node.folder / token) if token else ""
    node.write_settings(f"127.0.0.1:{port}", token_file, str(node.folder / "absent.sock"))

    with pytest.raises(NoAgentError, match=f"user {nobody} listens there"):
        put_safe_mode(node)

    assert request.read_bytes() == b""


def test_what_a_listener_of_another_user_says_of_safe_mode_is_not_believed(node, impostor):
    nobody = pwd.getpwnam("nobody").pw_uid
    port, request = impostor(nobody)
    node.write_settings(f"127.0.0.1:{port}", "", str(node.folder / "absent.sock"))

    with pytest.raises(NoAgentError, match=f"user {nobody} listens there"):
        look_at(node.settings)

    assert ask_agent("/safe-mode", settings=node.settings) == "hi"
    assert b"GET /safe-mode" in request.read_bytes()


def test_the_owner_of_the_token_file_may_listen(node, impostor, token):
    nobody = pwd.getpwnam("nobody").pw_uid
    port, request = impostor(nobody)
    os.chown(token, nobody, -1)
    node.write_settings(f"127.0.0.1:{port}", str(token), str(node.folder / "absent.sock"))

    assert put_safe_mode(node) == "hi"

    assert b"0123456789abcdef-the-secret" in request.read_bytes()


def test_a_port_without_a_listener_is_not_given_the_token(node, token):
    node.write_settings("127.0.0.1:1", str(token), str(node.folder / "absent.sock"))

    with pytest.raises(NoAgentError, match=r"127\.0\.0\.1:1 \(no process of this network"):
        put_safe_mode(node)


@pytest.mark.usefixtures("agent")
def test_what_the_agent_refuses_is_an_input_error_with_its_words(node):
    with pytest.raises(InputError, match=r"^the agent answers: no pod 'a/b' on this node$"):
        ask_agent("/explain", {"pod": "a/b"}, settings=node.settings)


@pytest.mark.usefixtures("agent")
def test_what_the_agent_cannot_do_is_a_machine_error_with_its_words(node, view):
    view.last = None

    with pytest.raises(MachineError, match=r"^the agent answers: nothing was observed yet"):
        ask_agent("/observe", settings=node.settings)


def test_no_agent_is_one_line_that_names_every_address_and_the_remedy(node):
    node.write_settings(listen="127.0.0.1:1")

    with pytest.raises(NoAgentError) as caught:
        ask_agent("/observe", settings=node.settings)

    message = str(caught.value)
    assert "\n" not in message
    assert f"{node.socket} (No such file or directory)" in message
    assert "127.0.0.1:1 (Connection refused)" in message
    assert "temper agent" in message
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
        b"HTTP/1.1 404 Not Found\r\nserver: other\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nthe rest does not come",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
    ],
)
def test_another_program_on_the_port_is_not_taken_for_an_agent(node, stranger, answer):
    port, answers = stranger
    answers[0] = answer
    node.write_settings(listen=f"127.0.0.1:{port}")

    with pytest.raises(NoAgentError, match=f"127.0.0.1:{port} "):
        ask_agent("/observe", settings=node.settings)


@pytest.mark.parametrize(
    ("bound", "said"),
    [("WHOLE_ANSWER_S", "no whole answer within 0 s"), ("LARGEST_ANSWER_BYTES", "more than 0 MiB")],
)
def test_an_answer_that_does_not_end_is_not_waited_for(node, stranger, monkeypatch, bound, said):
    port, answers = stranger
    answers[0] = b"HTTP/1.1 200 OK\r\nserver: temper/9\r\ncontent-length: 99\r\n\r\n{ and so on"
    node.write_settings(listen=f"127.0.0.1:{port}")
    monkeypatch.setattr(f"temper_core.client.{bound}", 0)

    with pytest.raises(NoAgentError, match=said):
        ask_agent("/observe", settings=node.settings)


@pytest.mark.parametrize("ask", [ask_agent, lambda *a, **k: next(stream_agent(*a, **k))])
@pytest.mark.parametrize("way", ["tcp", "socket"])
def test_a_head_that_trickles_is_not_waited_for(node, tmp_path, monkeypatch, ask, way):
    path = str(tmp_path / "trickle.sock")
    place = ("127.0.0.1", 0) if way == "tcp" else path
    with socket.socket(socket.AF_INET if way == "tcp" else socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        trickling = threading.Thread(target=trickle, args=(listening,), daemon=True)
        trickling.start()
        port = listening.getsockname()[1] if way == "tcp" else 0
        node.write_settings(
            listen=f"127.0.0.1:{port}" if port else "", socket=path if way == "socket" else ""
        )
        monkeypatch.setattr("temper_core.client.WHOLE_ANSWER_S", 0.5)

        with pytest.raises(NoAgentError, match="no whole answer within 0 s"):
            ask("/events/stream", settings=node.settings)


def trickle(listening):
    """Send a head without end, one byte at a time."""
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            with connection, suppress(ConnectionError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nserver: temper/9\r\nx: ")
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.05)


def test_an_answer_is_bounded_as_the_caller_says(node, stranger):
    port, answers = stranger
    answers[0] = b"HTTP/1.1 200 OK\r\nserver: temper/9\r\ncontent-length: 2000000\r\n\r\n"
    answers[0] += b" " * 2_000_000
    node.write_settings(listen=f"127.0.0.1:{port}")

    with pytest.raises(NoAgentError, match="an answer of more than 1 MiB"):
        ask_agent("/safe-mode", settings=node.settings, largest_bytes=1 << 20)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n", "is not JSON"),
        (b"HTTP/1.1 500 Oh\r\ncontent-type: application/json\r\n", "is not JSON"),
        (b"HTTP/1.1 500 Oh\r\ncontent-type: text/plain\r\n", "with status 500"),
    ],
)
def test_an_agent_that_answers_nonsense_is_a_machine_error(node, stranger, answer, error):
    port, answers = stranger
    answers[0] = answer + b"server: temper/9\r\ncontent-length: 2\r\n\r\nhi"
    node.write_settings(listen=f"127.0.0.1:{port}")

    with pytest.raises(MachineError, match=error):
        ask_agent("/observe", settings=node.settings)


def test_a_proxy_of_the_environment_is_not_asked(node, agent, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    assert ask_agent("/healthz", settings=node.settings)["alive"] is True
    assert agent.listen == ""


def test_plugins_get_it_from_the_package():
    assert temper_core.ask_agent is ask_agent
    assert "ask_agent" in temper_core.__all__
