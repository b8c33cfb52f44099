"""Orders rounds of a pool of threads: ``... bench.ladder.pool_client ORDERS ANSWERS SECONDS``.

The arguments are the pool's two named pipes and the seconds in which rounds begin. A round is one
order: the noisy threads work, and the answer is the mean time of a request meanwhile. It prints
``begin``, and at the end one line of JSON. With ``mean`` as the last argument that line is the mean
of all rounds, as the benchmark of a training prints it.
"""

import json
import signal
import sys
import threading
import time
from pathlib import Path

from bench.ladder.redis_client import measured

ORDER = b"\n"
NS_OF_US = 1_000


def rounds(orders: Path, answers: Path, seconds: float) -> list[int]:
    """Order one round after the other. Return the mean times of their requests in ns.

    SIGTERM ends it after the answer of its round, which the next caller would read otherwise.
    """
    seen: list[int] = []
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    with orders.open("wb", buffering=0) as asked, answers.open("rb") as answered:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at and not is_over.is_set():
            asked.write(ORDER)
            seen.append(int(NS_OF_US * float(answered.readline())))
    return seen


def main() -> None:
    """Order the rounds, and print what was measured."""
    orders, answers, seconds, *metric = sys.argv[1:]
    print("begin", flush=True)
    latencies = rounds(Path(orders), Path(answers), float(seconds))
    if metric:
        print(measured(metric[0], latencies))
        return
    print(json.dumps({"latencies_ns": latencies, "unanswered": 0, "client_late_ns": 0}))


if __name__ == "__main__":
    main()
