"""Reading of /proc files, and the constants of ``stat`` (proc_pid_stat(5))."""

import os

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PF_KTHREAD = 0x0020_0000
PF_FORKNOEXEC = 0x0000_0040
"""The flag of a task that was forked and has executed no program since (include/linux/sched.h)."""


def read_once(path: str, size: int) -> bytes:
    """Return up to *size* bytes of *path*. Raise OSError if it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)
