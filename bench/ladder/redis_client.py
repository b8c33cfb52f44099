"""An open-loop client of Redis: ``python -m bench.ladder.redis_client SOCKET SECONDS ...``.

The arguments are the socket's path, the seconds of requests, the mean time between two requests in
us, the number of keys, and the seed, which fixes all arrivals and keys. Half of the requests read a
key, and half of them write one. The client does not wait for answers: a latency begins at the
intended arrival. It prints ``begin``, and at the end one line of JSON. With ``mean`` as the last
argument that line is the mean latency, as the benchmark of a training prints it.
"""

import json
import random
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Sequence

UNANSWERED_NS = 10_000_000_000
BEGIN_NS = 20_000_000
RECEIVED = 1 << 16
VALUE = b"v" * 100


def arrivals(seconds: float, period_us: float, seed: int) -> list[int]:
    """Return the ns of all arrivals after the beginning, at exponential gaps."""
    chance, at_ns, planned = random.Random(seed), 0.0, []  # noqa: S311 - no secret
    while (at_ns := at_ns + chance.expovariate(1) * period_us * 1e3) < seconds * 1e9:
        planned.append(int(at_ns))
    return planned


def command(*words: bytes) -> bytes:
    """Return a command in Redis' protocol, RESP2."""
    parts = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    return b"*%d\r\n%s" % (len(words), parts)


def commands(count: int, keys: int, seed: int) -> list[bytes]:
    """Return that many requests, reads and writes of random keys."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    names = [b"key:%d" % chance.randrange(keys) for _ in range(count)]
    return [
        command(b"SET", name, VALUE) if chance.random() < 1 / 2 else command(b"GET", name)
        for name in names
    ]


def take_replies(buffer: bytearray) -> int:
    """Remove all complete replies, which are lines or strings. Return how many there were."""
    count = 0
    while (end := buffer.find(b"\r\n")) >= 0:
        size = end + 2
        if buffer.startswith(b"$") and (length := int(buffer[1:end])) >= 0:
            size += length + 2
        if len(buffer) < size:
            break
        del buffer[:size]
        count += 1
    return count


def ask(
    server: socket.socket, due: Sequence[int], requests: Sequence[bytes]
) -> tuple[list[int], int]:
    """Send each request when it is due. Return the latencies, and by how much the latest was late.

    Times are in ns of the monotonic clock. Requests without an answer 10 s after the last arrival
    are left out.
    """
    latencies: list[int] = []
    waiting: deque[int] = deque()
    buffer, sent, late = bytearray(), 0, 0
    until = (due[-1] if due else 0) + UNANSWERED_NS
    while len(latencies) < len(due) and (now := time.monotonic_ns()) < until:
        if sent < len(due) and due[sent] <= now:
            server.sendall(requests[sent])
            waiting.append(due[sent])
            late = max(late, now - due[sent])
            sent += 1
            continue
        next_ns = due[sent] if sent < len(due) else until
        if select.select([server], [], [], (next_ns - now) / 1e9)[0]:
            buffer += server.recv(RECEIVED)
            answered = time.monotonic_ns()
            latencies += [answered - waiting.popleft() for _ in range(take_replies(buffer))]
    return latencies, late


def measured(metric: str, latencies_ns: Sequence[int]) -> str:
    """Return the mean latency in ms as a line of JSON, as a training reads it."""
    value = sum(latencies_ns) / max(1, len(latencies_ns)) / 1e6
    return json.dumps({"metric": metric, "value": value, "unit": "ms", "better": "lower"})


def main() -> None:
    """Ask the server, and print what was measured."""
    path, seconds, period_us, keys, seed, *metric = sys.argv[1:]
    planned = arrivals(float(seconds), float(period_us), int(seed))
    requests = commands(len(planned), int(keys), int(seed))
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        print("begin", flush=True)
        began = time.monotonic_ns() + BEGIN_NS
        latencies, late = ask(server, [began + each for each in planned], requests)
    unanswered = len(planned) - len(latencies)
    if metric:
        print(measured(metric[0], latencies))
        return
    seen = {"latencies_ns": latencies, "unanswered": unanswered, "client_late_ns": late}
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
