"""What every reader of threads hands over, whichever way it reads the kernel."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from attrs import field, frozen


class ThreadRow(NamedTuple):
    """One thread that ran since the last snapshot; a plain tuple, since there are thousands.

    ``run_ns`` and ``delay_ns`` (runnable, but waiting) are deltas. ``start_ticks`` is in clock
    ticks since boot and tells a reused tid. ``cgroup`` as the engine spells it.
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


@frozen
class ThreadRows:
    """One pass over the threads of the host.

    ``clock_ns`` is the reader's own clock at the pass, to be given back as ``since``.
    ``threads_by_cgroup`` counts all threads that live, whether they ran or not.
    """

    clock_ns: int
    rows: tuple[ThreadRow, ...] = ()
    threads_seen: int = 0
    threads_by_cgroup: Mapping[str, int] = field(factory=dict)
    defects: tuple[str, ...] = ()


class ThreadReader(Protocol):
    """A tier of observation: ``proc`` today, a BPF one behind the same call later."""

    tier: str

    def snapshot(self, since: int) -> ThreadRows:
        """Return who ran since the pass with clock *since*; 0 asks for a baseline, without rows."""
        ...

    def refresh_cgroups(self) -> None:
        """Learn at the next snapshot anew where every process lives: the pods have changed."""
        ...

    def close(self) -> None:
        """Let go of everything the reader holds."""
        ...
