"""A real benchmark: threads pass a byte in a circle. Prints the mean time of a round.

``ping.py SECONDS [SLEEP_US]`` prints one JSON line. Every round ends in a sleep, so that the load
of the machine shows in the figure.
"""

import json
import os
import sys
import threading
import time


def passed_on(source, target):
    while os.read(source, 1):
        os.write(target, b".")


def main(seconds, sleep_us=0.0):
    there, back = os.pipe(), os.pipe()
    threading.Thread(target=passed_on, args=(there[0], back[1]), daemon=True).start()
    ends = time.monotonic() + seconds
    times = []
    while time.monotonic() < ends:
        began = time.perf_counter()
        os.write(there[1], b".")
        os.read(back[0], 1)
        times.append(time.perf_counter() - began)
        time.sleep(sleep_us / 1e6)
    mean_us = 1e6 * sum(times) / len(times)
    row = {"metric": "round", "value": mean_us, "unit": "us", "better": "lower"}
    sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
