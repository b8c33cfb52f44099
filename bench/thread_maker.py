"""Runs sleeping threads until stdin ends: ``thread_maker.py THREADS PAUSE_S`` (0: never wake)."""

import contextlib
import sys
import threading
import time


def nap(pause_s: float) -> None:
    """Wake every *pause_s* seconds and sleep again."""
    while True:
        time.sleep(pause_s)


def main() -> None:
    """Start the threads, report it, and wait until standard input ends."""
    count, pause_s = int(sys.argv[1]), float(sys.argv[2])
    threading.stack_size(128 * 1024)
    for _ in range(count - 1):
        threading.Thread(target=nap, args=(pause_s or 1e6,), daemon=True).start()
    print("ready", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()


if __name__ == "__main__":
    main()
