"""Reading of /proc files, and the constants of ``stat`` (proc_pid_stat(5))."""

import os
from collections.abc import Sequence
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PF_KTHREAD = 0x0020_0000
PF_FORKNOEXEC = 0x0000_0040
"""The flag of a task that was forked and has executed no program since (include/linux/sched.h)."""
# Positions counted after the closing parenthesis of the name.
_STATE, _PARENT, _FLAGS, _THREADS, _START = 0, 1, 6, 17, 19
_OWN_TIMES, _CHILDREN_TIMES = slice(11, 13), slice(13, 15)


def is_zombie(fields: Sequence[bytes]) -> bool:
    """Whether a process has ended, by the *fields* of its ``stat`` after its name."""
    # A leader may end before its threads do.
    return fields[_STATE] in (b"Z", b"X") and int(fields[_THREADS]) <= 1


class ProcessStat(NamedTuple):
    """A process or thread: start and CPU time in seconds, and whether it is a mere fork."""

    comm: str
    start_s: float
    used_s: float
    parent: int
    is_child: bool


def parsed_stat(stat: bytes) -> ProcessStat | None:
    """Return what a ``stat`` says. None for kernel threads, and for ended processes."""
    opening, closing = stat.find(b"("), stat.rfind(b")")
    fields = stat[closing + 1 :].split()
    if opening < 0 or len(fields) <= _START or int(fields[_FLAGS]) & PF_KTHREAD:
        return None
    if is_zombie(fields):
        return None
    ticks = sum(map(int, (*fields[_OWN_TIMES], *fields[_CHILDREN_TIMES])))
    comm = stat[opening + 1 : closing].decode("utf-8", "replace")
    start_s, used_s = int(fields[_START]) / TICKS_PER_S, ticks / TICKS_PER_S
    is_child = bool(int(fields[_FLAGS]) & PF_FORKNOEXEC)
    return ProcessStat(comm, start_s, used_s, int(fields[_PARENT]), is_child)


def read_once(path: str, size: int) -> bytes:
    """Return up to *size* bytes of *path*. Raise OSError if it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)
