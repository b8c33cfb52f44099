"""What the kernel writes about a thread or process in /proc, parsed.

Formats: fs/proc/array.c (``do_task_stat``), fs/proc/base.c (``proc_pid_schedstat``) and
kernel/cgroup/cgroup.c (``proc_cgroup_show``).
"""

import os
import re
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
NS_PER_TICK = 1_000_000_000 // TICKS_PER_S
PF_KTHREAD = 0x0020_0000
COMM_LENGTH = 15
UNIFIED = ""
V1_BY_WORTH = ("name=systemd", "cpu", "cpuacct", "memory", "pids", "cpuset")
"""v1 hierarchies by how much they tell of who a process is. The pod sources read the same."""

# Positions counted after the closing parenthesis of the name: ``state`` is 0.
_FLAGS, _UTIME, _STIME, _START, _PROCESSOR = 6, 11, 12, 19, 36
_KWORKER = re.compile(r"kworker/(?!R-)[^+-]*")


class SchedStat(NamedTuple):
    """CPU time and run-queue wait of a thread since it was forked, in nanoseconds."""

    run_ns: int
    delay_ns: int


class StatLine(NamedTuple):
    """The parts of a ``stat`` line that observation uses. ``start_ticks`` since boot."""

    comm: str
    is_kthread: bool
    cpu_ticks: int
    start_ticks: int
    cpu: int


def parse_schedstat(content: bytes) -> SchedStat:
    """Read ``run_ns delay_ns timeslices``. Raise ValueError where it is something else."""
    run, delay, _ = content.split()
    return SchedStat(int(run), int(delay))


def parse_stat(content: bytes) -> StatLine:
    """Read a ``stat`` line. Raise ValueError where it is cut or something else.

    The name is written raw: it may hold blanks, parentheses and newlines, so it ends at the
    *last* closing parenthesis. Bytes that are not UTF-8 become U+FFFD.
    """
    opening, closing = content.index(b"("), content.rindex(b")")
    fields = content[closing + 1 :].split(None, _PROCESSOR + 1)
    if len(fields) <= _PROCESSOR:
        raise ValueError("the stat line is cut")
    is_kthread = bool(int(fields[_FLAGS]) & PF_KTHREAD)
    name = content[opening + 1 : closing].decode("utf-8", "replace")
    return StatLine(
        comm=_kernel_name(name) if is_kthread else name,
        is_kthread=is_kthread,
        cpu_ticks=int(fields[_UTIME]) + int(fields[_STIME]),
        start_ticks=int(fields[_START]),
        cpu=int(fields[_PROCESSOR]),
    )


def _kernel_name(name: str) -> str:
    # For a kworker the kernel appends what it works on (wq_worker_comm), which is no part of the
    # task's name: the engine matches the bare one, and the suffix changes all the time.
    bare = _KWORKER.match(name)
    return (bare.group() if bare else name)[:COMM_LENGTH]


def parse_cgroup(content: bytes) -> str:
    """Return a process' cgroup in the engine's form: ``a/b/``, the root is ``/``.

    The v2 path. Where that is the root, as for everyone on a hybrid host whose workloads live
    under v1 controllers, the first of ``V1_BY_WORTH`` that says more. Empty if nothing is told.
    """
    paths: dict[str, str] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if path.startswith("/"):
            for controller in [UNIFIED] if number == "0" else controllers.split(","):
                paths[controller] = engine_path(path)
    below_root = (paths[name] for name in (UNIFIED, *V1_BY_WORTH) if paths.get(name, "/") != "/")
    return next(below_root, "/" if paths else "")


def engine_path(path: str) -> str:
    """Spell a cgroup path as the engine does: no leading slash, one trailing one."""
    bare = path.removesuffix(" (deleted)").strip("/")
    return f"{bare}/" if bare else "/"
