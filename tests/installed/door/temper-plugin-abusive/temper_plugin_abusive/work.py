"""What runs in the helper processes."""

import os
import signal
import sys
import time


def forever(_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600)


def eat_memory(_):
    kept = []
    while True:
        kept.append(bytearray(1024 * 1024))


def killed(_):
    os.kill(os.getpid(), signal.SIGKILL)


def fork(_):
    for _ in range(100):
        if os.fork() == 0:
            forever(_)
    forever(_)


def print_on(_):
    line = "x" * 65_536
    while True:
        sys.stdout.write(line)
        sys.stderr.write(line)


def huge_result(_):
    return "x" * 2_000_000
