"""The scheduling policy of a thread, by name, and its CPU affinity."""

import os
from pathlib import Path

from temper_core.observe.places import remember
from temper_core.observe.thread_rows import ThreadRow

POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
"""Names by the numbers of include/uapi/linux/sched.h. -1 is a policy that the tier cannot read."""

TRUSTED_LOOKS = 12
"""Looks for which an affinity is cached. It may change without a change of its CPU count."""

_HOST_PID_NAMESPACE = 0xEFFF_FFFC
"""Inode of the first pid namespace (``PROC_PID_INIT_INO``)."""


_Known = tuple[int, int, int, tuple[int, ...]]
"""The thread's start and number of allowed CPUs, the look when the entry expires, and its CPUs."""


class Affinities:
    """CPUs of the threads that may not use all. They are read when a thread looks new.

    In a pid namespace of the agent's own, the host's tids mean other threads or none. Then no
    affinity is read, and the first bound thread sets ``defect``.
    """

    def __init__(self, proc_root: Path | str = Path("/proc")) -> None:
        self._is_host = _is_host_pid_namespace(proc_root)
        self._known: dict[int, _Known] = {}
        self._look = 0
        self.defect = ""

    def begin(self) -> None:
        """Begin another look at the threads."""
        self._look += 1
        self.defect = ""

    def of(self, row: ThreadRow, cpus: int) -> tuple[int, ...]:
        """Return the CPUs that the thread is bound to, empty if it may use all *cpus*."""
        if not 0 < row.allowed < cpus:
            return ()
        if not self._is_host:
            self.defect = "threads: their CPU affinities cannot be read without hostPID"
            return ()
        entry = self._known.get(row.tid)
        if entry is not None:
            start_ticks, allowed, until, bound = entry
            is_same = start_ticks == row.start_ticks and allowed == row.allowed
            if is_same and self._look < until:
                return bound
        try:
            bound = tuple(sorted(os.sched_getaffinity(row.tid)))
        except OSError:  # it has ended since
            return ()
        until = self._look + TRUSTED_LOOKS
        remember(self._known, row.tid, (row.start_ticks, row.allowed, until, bound))
        return bound


def _is_host_pid_namespace(proc_root: Path | str) -> bool:
    try:
        return Path(proc_root, "self", "ns", "pid").stat().st_ino == _HOST_PID_NAMESPACE
    except OSError:
        return False
