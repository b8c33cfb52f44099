import socket
import threading
import time

import pytest

from bench.ladder.redis_client import arrivals, ask, command, commands, take_replies


def test_a_seed_fixes_all_arrivals():
    assert arrivals(4, 8000, 1) == arrivals(4, 8000, 1) != arrivals(4, 8000, 2)


def test_arrivals_have_the_mean_gap_and_end_in_time():
    planned = arrivals(40, 8000, 1)

    assert planned == sorted(planned)
    assert planned[-1] < 40e9
    assert 40e9 / len(planned) == pytest.approx(8e6, rel=0.05)


def test_a_command_is_an_array_of_strings():
    assert command(b"GET", b"key:1") == b"*2\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n"


def test_half_of_the_requests_write():
    requests = commands(1000, 10, 1)

    assert sum(b"SET" in each for each in requests) == pytest.approx(500, abs=60)


@pytest.mark.parametrize(
    ("received", "count", "rest"),
    [
        (b"+OK\r\n", 1, b""),
        (b"$3\r\nabc\r\n+OK\r\n", 2, b""),
        (b"$3\r\n\r\nx\r\n", 1, b""),
        (b"$-1\r\n", 1, b""),
        (b"+OK\r\n$3\r\nab", 1, b"$3\r\nab"),
        (b"+O", 0, b"+O"),
        (b"", 0, b""),
    ],
    ids=["line", "string-and-line", "string-with-end", "nothing", "part-of-string", "part", "none"],
)
def test_complete_replies_are_taken(received, count, rest):
    buffer = bytearray(received)

    assert take_replies(buffer) == count
    assert buffer == rest


def test_a_latency_begins_at_the_intended_arrival_and_not_with_the_answer_before():
    ours, theirs = socket.socketpair()

    def answer_late():
        theirs.recv(100)
        time.sleep(0.2)
        theirs.sendall(b"+OK\r\n+OK\r\n")

    with ours, theirs:
        threading.Thread(target=answer_late).start()
        began = time.monotonic_ns()
        latencies, late = ask(ours, [began, began + 10_000_000], [b"1", b"2"])

    assert latencies[0] >= 200_000_000
    assert latencies[0] - latencies[1] == 10_000_000
    assert late < latencies[0]
