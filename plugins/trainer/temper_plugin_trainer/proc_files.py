"""Files of /proc, as the sampler reads them, and the constants of ``stat`` (proc_pid_stat(5))."""

import os

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PF_KTHREAD = 0x0020_0000


def read_once(path: str, size: int) -> bytes:
    """Open *path*, read up to *size* bytes and close it. Raise OSError where that fails."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)
