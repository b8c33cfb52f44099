"""Whether a thread id still means the same thread."""

import os
from pathlib import Path

NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def is_same_thread(tid: int, start_ns: int) -> bool:
    """Whether *tid* is the thread that started *start_ns* after boot.

    The start is known to the precision of proc_pid_stat(5), in ticks.
    """
    try:
        stat = Path(f"/proc/{tid}/stat").read_bytes()
    except OSError:
        return False  # it has ended
    ticks = int(stat.rpartition(b")")[2].split()[19])
    return abs(ticks - start_ns // NS_PER_TICK) <= 1  # the kernel rounds differently
