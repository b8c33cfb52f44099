"""The records that every reader of threads returns."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from attrs import field, frozen


class ThreadRow(NamedTuple):
    """One thread that ran since the last snapshot. A plain tuple, since there are thousands.

    ``run_ns`` and ``delay_ns`` (runnable, but waiting) are deltas. So are ``runs`` (times it got a
    CPU), ``voluntary`` and ``involuntary`` switches and ``migrations``. A value that the tier
    cannot read is -1. ``start_ticks``, in clock ticks since boot, distinguishes threads with a
    reused tid. ``cgroup`` is in the engine's form. ``policy`` is the number of sched(7).
    ``allowed`` is the number of CPUs in its affinity (0 if it was not read). ``waiting_ns`` is
    the length of its current wait for a CPU.
    """

    tid: int
    tgid: int
    comm: str
    process: str
    start_ticks: int
    cpu: int
    run_ns: int
    delay_ns: int
    is_kthread: bool
    uid: int
    cgroup: str
    runs: int = -1
    voluntary: int = -1
    involuntary: int = -1
    migrations: int = -1
    policy: int = -1
    nice: int = 0
    rt_priority: int = 0
    allowed: int = 0
    waiting_ns: int = 0


@frozen
class ThreadSums:
    """Sums over the threads that ran but have no row of their own. All are deltas."""

    threads: int = 0
    run_ns: int = 0
    delay_ns: int = 0
    runs: int = 0
    voluntary: int = 0
    involuntary: int = 0
    migrations: int = 0


@frozen
class ThreadRows:
    """One pass over the threads of the host.

    ``clock_ns`` is the reader's own clock at the pass, the next ``since``. ``threads_by_cgroup``
    counts all living threads, whether they ran or not. ``rest`` sums up, by cgroup, the threads
    that ran too little for a row. ``least_ns`` is the least run time or wait for a row,
    except for threads of a pod, user or service that has many such threads.
    ``kernel_ns`` is the CPU time of the kernel side.

    ``tells_who_ran`` is false if there is no earlier pass to compare with, or this one failed.
    ``sees_all`` is false if some threads are hidden or could not be read. These may have used the
    CPU time beyond the rows.
    """

    clock_ns: int
    rows: tuple[ThreadRow, ...] = ()
    threads_seen: int = 0
    threads_by_cgroup: Mapping[str, int] = field(factory=dict)
    defects: tuple[str, ...] = ()
    rest: Mapping[str, ThreadSums] = field(factory=dict)
    least_ns: int = 0
    kernel_ns: int = 0
    tells_who_ran: bool = True
    sees_all: bool = True


class ThreadReader(Protocol):
    """A tier of observation: ``bpf``, ``bpf-iter`` or ``proc``."""

    tier: str

    def snapshot(self, since: int) -> ThreadRows:
        """Return the threads that ran since clock *since*. 0 makes a baseline without rows."""
        ...

    def refresh_cgroups(self) -> None:
        """Read the cgroup of every process again at the next snapshot, since the pods changed."""
        ...

    def close(self) -> None:
        """Release all resources of the reader."""
        ...
