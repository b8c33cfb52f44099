"""Processes that change one file take turns."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST_WAIT_S = 2.0
"""For a turn. A change takes milliseconds."""
LOOK_S = 0.01


@contextmanager
def turn_in(directory: Path, wait_s: float = LONGEST_WAIT_S) -> Iterator[None]:
    """Change a file of *directory* while no other process does.

    The turn is a lock of the directory (flock(2)), so that no file is left behind. Every user that
    may read the directory can hold it. After *wait_s* seconds, and where no lock can be had, the
    change goes on without: a request for safe mode must not wait for a stranger.
    """
    descriptor = -1
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if descriptor >= 0:
            _wait(descriptor, time.monotonic() + wait_s)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _wait(descriptor: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return
            time.sleep(LOOK_S)
        except OSError:  # the file system has no locks
            return
        else:
            return
