"""Whether a thread id still means the same thread."""

import os
from pathlib import Path

FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""``PROC_PID_INIT_INO`` (include/linux/proc_ns.h)."""
NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def in_first_pid_namespace(proc_root: str = "/proc") -> bool:
    """Whether this process's thread ids are the kernel's. True if /proc does not show it."""
    try:
        return str((Path(proc_root) / "self/ns/pid").readlink()) == FIRST_PID_NAMESPACE
    except OSError:
        return True  # without /proc every other check fails too


def is_same_thread(tid: int, start_ns: int) -> bool:
    """Whether *tid* is the thread that started *start_ns* after boot.

    The start is known to the precision of proc_pid_stat(5), in ticks.
    """
    try:
        ticks = _start_ticks(tid)
    except OSError:
        return False  # it has ended
    return abs(ticks - start_ns // NS_PER_TICK) <= 1  # the kernel rounds differently


def leader_of(tid: int) -> tuple[int, int]:
    """Return the id and the start in ns since boot of the leader of thread *tid*.

    Both are 0 if the thread leads its process or has ended. By execve(2) a thread takes the id and
    the start of its leader (Linux, ``de_thread``).
    """
    try:
        status = Path(f"/proc/{tid}/status").read_bytes()
        leader = int(status.partition(b"\nTgid:")[2].split()[0])
        if leader == tid:
            return 0, 0
        return leader, _start_ticks(leader) * NS_PER_TICK
    except (OSError, IndexError):
        return 0, 0


def start_ticks_in(process: Path, tid: int) -> int:
    """Return the start of thread *tid* of the process with the directory *process* in /proc.

    Raises OSError if it is no thread of that process any more.
    """
    # In the file of the process the kernel adds up all its threads (do_task_stat), so that a look
    # at each thread would take the square of their number.
    stat = (process / "task" / str(tid) / "stat").read_bytes()
    return int(stat.rpartition(b")")[2].split()[19])  # field 22 of proc_pid_stat(5)


def _start_ticks(tid: int) -> int:
    """Return the start of a thread of any process. Raises OSError."""
    return start_ticks_in(Path(f"/proc/{tid}"), tid)
