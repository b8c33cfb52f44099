"""How a thread may be scheduled: its policy by name, and the CPUs it is bound to."""

import os
from pathlib import Path

from temper_core.observe.places import remember
from temper_core.observe.thread_rows import ThreadRow

POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
"""Names by the numbers of include/uapi/linux/sched.h; -1 is what a tier cannot tell."""

TRUSTED_LOOKS = 12
"""Looks for which an affinity is believed: it may change and still leave as many CPUs."""

_HOST_PID_NAMESPACE = 0xEFFF_FFFC
"""Inode of the first pid namespace (``PROC_PID_INIT_INO``)."""


_Known = tuple[int, int, int, tuple[int, ...]]
"""Start and number of CPUs of the thread that was asked about, until which look, and the answer."""


def policy_name(number: int) -> str:
    """Return the name of a policy as sched(7) has it. Empty if it is not known."""
    return POLICIES.get(number, "")


class Affinities:
    """CPUs of the threads that may not use all. Asked of the kernel only when they seem new.

    Where the agent has a pid namespace of its own, the host's tids mean other threads there, or
    none: then nothing is asked, and ``defect`` says so as soon as there was something to ask.
    """

    def __init__(self, proc_root: Path | str = Path("/proc")) -> None:
        self._is_host = _is_host_pid_namespace(proc_root)
        self._known: dict[int, _Known] = {}
        self._look = 0
        self.defect = ""

    def begin(self) -> None:
        """Note that another look at the threads begins."""
        self._look += 1
        self.defect = ""

    def of(self, row: ThreadRow, cpus: int) -> tuple[int, ...]:
        """Return the CPUs that the thread is bound to. Empty if it may use all *cpus*."""
        if not 0 < row.allowed < cpus:
            return ()
        if not self._is_host:
            self.defect = "threads: the CPUs they are bound to are not seen without hostPID"
            return ()
        known = self._known.get(row.tid)
        if known is not None:
            start_ticks, allowed, until, bound = known
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
