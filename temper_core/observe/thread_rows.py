"""What every reader of threads hands over, whichever way it reads the kernel."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from attrs import field, frozen


class ThreadRow(NamedTuple):
    """One thread that ran since the last snapshot. A plain tuple, since there are thousands.

    ``run_ns`` and ``delay_ns`` (runnable, but waiting) are deltas, and so are ``runs`` (times it
    was given a CPU), ``voluntary`` and ``involuntary`` switches and ``migrations``. What a tier
    cannot tell is -1. ``start_ticks`` is in clock ticks since boot and tells a reused tid.
    ``cgroup`` as the engine spells it. ``policy`` is the number of sched(7), ``allowed`` how many
    CPUs its affinity leaves it (0 where that was not read), ``waiting_ns`` how long it has been
    waiting for a CPU as of now.
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
    """What threads used together: those that ran but have no row of their own. All are deltas."""

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

    ``clock_ns`` is the reader's own clock at the pass, to be given back as ``since``.
    ``threads_by_cgroup`` counts all threads that live, whether they ran or not. Threads that ran
    too little to have a row are summed up in ``rest``, by cgroup. ``least_ns`` is what a thread
    must have run or waited for a row. ``kernel_ns`` is the CPU time that the kernel side took.
    ``tells_who_ran`` is false where there is no pass before to compare with, or this one failed.
    ``sees_all`` where some threads are hidden, or could not be read: what ran beyond the rows may
    be theirs.
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
        """Return who ran since the pass with clock *since*. 0 asks for a baseline, without rows."""
        ...

    def refresh_cgroups(self) -> None:
        """Learn at the next snapshot anew where every process lives: the pods have changed."""
        ...

    def close(self) -> None:
        """Let go of everything the reader holds."""
        ...
