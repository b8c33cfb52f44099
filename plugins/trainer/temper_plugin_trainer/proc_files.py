"""Reading of /proc files, and the constants of ``stat`` (proc_pid_stat(5))."""

import os
from collections.abc import Sequence

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PF_KTHREAD = 0x0020_0000
PF_FORKNOEXEC = 0x0000_0040
"""The flag of a task that was forked and has executed no program since (include/linux/sched.h)."""
# Positions counted after the closing parenthesis of the name.
_STATE, _THREADS = 0, 17


def is_zombie(fields: Sequence[bytes]) -> bool:
    """Whether a process has ended, by the *fields* of its ``stat`` after its name."""
    # A leader may end before its threads do.
    return fields[_STATE] in (b"Z", b"X") and int(fields[_THREADS]) <= 1


def read_once(path: str, size: int) -> bytes:
    """Return up to *size* bytes of *path*. Raise OSError if it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)
