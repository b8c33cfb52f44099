"""Real-time threads that keep a CPU for themselves, and threads that cannot run elsewhere."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PRIORITY = 50


@contextmanager
def hogging(cpu: int) -> Iterator[None]:
    """Have a real-time process that never sleeps on *cpu*."""
    with _process(cpu, _hog):
        yield


@contextmanager
def bound(cpu: int) -> Iterator[None]:
    """Have an ordinary process that sleeps now and then, and may run on *cpu* only."""
    with _process(cpu, _doze):
        yield


@contextmanager
def _process(cpu: int, body: Callable[[], None]) -> Iterator[None]:
    child = os.fork()
    if not child:
        try:
            os.sched_setaffinity(0, {cpu})
            body()
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _hog() -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    while True:
        pass


def _doze() -> None:
    while True:
        time.sleep(0.05)
