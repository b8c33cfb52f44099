"""A program with threads that come and go: ``tenant.py THREADS LIFE_S`` until stdin ends.

Each thread wakes every 50 ms, lives for a random time of at most twice LIFE_S, and is replaced.
"""

import random
import sys
import threading
import time

PAUSE_S = 0.05


def live(life_s: float) -> None:
    """Wake and sleep for a random time, and then start the thread that follows."""
    end = time.monotonic() + random.uniform(0.2, 2) * life_s  # noqa: S311 - no secret
    while time.monotonic() < end:
        time.sleep(PAUSE_S)
    start(life_s)


def start(life_s: float) -> None:
    """Start one thread."""
    threading.Thread(target=live, args=(life_s,), daemon=True).start()


if __name__ == "__main__":
    threading.stack_size(128 * 1024)
    for _ in range(int(sys.argv[1])):
        start(float(sys.argv[2]))
    sys.stdin.read()
