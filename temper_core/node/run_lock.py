"""The lock under which the cgroups of ``temper run`` are made and removed."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from temper_core.errors import MachineError

LONGEST_LOCK_S = 2.0
LOCK_RETRY_S = 0.02
LOCK_FILE = "cgroup.kill"
OPEN_TRIES = 3


@contextmanager
def run_lock(parent: Path) -> Iterator[bool]:
    """Lock out other ``temper run`` of this host while cgroups are made or removed in *parent*.

    A change takes milliseconds, so after ``LONGEST_LOCK_S`` it goes on without the lock. Yields
    whether it has it. Without it no other cgroup may be removed.
    """
    until = time.monotonic() + LONGEST_LOCK_S
    while True:
        descriptor = _open_lock(parent)
        try:
            is_alone = _take_lock(descriptor, until)
            if not is_alone or _is_in_place(descriptor, parent):
                yield is_alone
                return
        finally:
            os.close(descriptor)


def _open_lock(parent: Path) -> int:
    """Open what is locked (flock(2)): a file of the kernel, so that none is left behind.

    It is ``cgroup.kill`` of *parent*, which is made for it. Whoever may open a file may lock it,
    and only root may open this one. Before Linux 5.14 it is the root, which every user may lock.
    """
    for _ in range(OPEN_TRIES):
        with suppress(OSError):  # the last temper run removes the slice
            parent.mkdir(exist_ok=True)
            return os.open(parent / LOCK_FILE, os.O_WRONLY | os.O_CLOEXEC)
    try:
        return os.open(parent.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise MachineError(f"cannot open {parent.parent}: {error.strerror}") from error


def _take_lock(descriptor: int, until: float) -> bool:
    while time.monotonic() < until:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(LOCK_RETRY_S)
    return False


def _is_in_place(descriptor: int, parent: Path) -> bool:
    """Whether the locked file is not one of a slice that was removed meanwhile."""
    locked = os.fstat(descriptor)
    for path in (parent / LOCK_FILE, parent.parent):
        with suppress(OSError):
            if os.path.samestat(locked, path.stat()):
                return True
    return False
