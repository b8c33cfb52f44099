import logging
import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from structlog.testing import capture_logs

UNFINISHED = (
    b"PUT /safe-mode HTTP/1.1\r\nhost: a\r\nauthorization: Bearer 0123456789abcdef-the-secret\r\n"
    b"expect: 100-continue\r\ncontent-length: 10\r\n\r\n"
)
ASKED = b"GET /safe-mode HTTP/1.0\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.0\r\n\r\n"


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Let this process open nothing more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_hung_up_on(connection) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(100) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def answer_of(connection) -> bytes:
    try:
        return connection.recv(100)
    except ConnectionResetError:
        return b""


def begin_a_request(stack, connect):
    """Begin a request, and know that the server reads it."""
    connection = stack.enter_context(connect())
    connection.sendall(UNFINISHED)
    assert connection.recv(100).startswith(b"HTTP/1.1 100")
    return connection


@pytest.mark.parametrize(("way", "bound"), [("connect", 64), ("connect_locally", 32)])
def test_idle_connections_beyond_the_bound_make_room_for_those_that_ask(start, way, bound):
    connect = getattr(start(), way)
    with ExitStack() as stack:
        idle = [stack.enter_context(connect()) for _ in range(120)]
        asking = stack.enter_context(connect())
        asking.sendall(HEALTH)

        answer = asking.recv(100)
        left = [not is_hung_up_on(connection) for connection in idle]

    assert answer.startswith(b"HTTP/1.1 200")
    assert sum(left) <= bound - 1
    assert not any(left[:50])


def test_who_owes_the_rest_of_a_request_makes_room_for_who_asks(start, token_file):
    agent = start(token_file)
    with ExitStack() as stack, capture_logs() as logs:
        owing = [begin_a_request(stack, agent.connect) for _ in range(64)]
        newcomer = stack.enter_context(agent.connect())
        newcomer.sendall(ASKED)

        answer = answer_of(newcomer)
        local = agent.unix.get("/healthz").status_code
        left = [is_hung_up_on(each) for each in owing]

    assert answer.startswith(b"HTTP/1.1 200")
    assert local == 200
    assert left == [True] + [False] * 63
    assert logs == []


def test_connections_that_ended_leave_their_room_to_others(start):
    agent = start()

    for _ in range(200):
        with agent.connect() as raw:
            raw.sendall(HEALTH)
            assert raw.recv(100).startswith(b"HTTP/1.1 200")


def test_without_descriptors_the_server_waits_says_so_once_and_serves_again(start, caplog):
    agent = start()
    with ExitStack() as stack, capture_logs() as logs:
        waiting = [stack.enter_context(socket.socket()) for _ in range(3)]
        with no_descriptor_left():
            for raw in waiting:
                raw.connect((agent.server.address.host, agent.server.address.port))
                raw.sendall(HEALTH)
            for _ in range(100):
                if logs:
                    break
                time.sleep(0.05)

        answers = [raw.recv(100) for raw in waiting]

    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
    assert [entry["event"] for entry in logs] == ["connections_not_accepted"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
