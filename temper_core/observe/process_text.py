"""Parsers for the kernel's files of a thread or process in /proc.

The formats are those of fs/proc/array.c (``do_task_stat``), fs/proc/base.c
(``proc_pid_schedstat``) and kernel/cgroup/cgroup.c (``proc_cgroup_show``).
"""

import os
import re
from functools import cache
from posixpath import normpath
from typing import NamedTuple

from temper_core.kernel_text import kernel_lines
from temper_core.scheduler.host.own_cgroup import hidden_path
from temper_core.scheduler.host.roots import Roots

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
NS_PER_TICK = 1_000_000_000 // TICKS_PER_S
PF_KTHREAD = 0x0020_0000
COMM_LENGTH = 15
LONGEST_PATH = 512
"""Characters of a cgroup's path. The pod sources read no longer ones either."""
UNIFIED = ""
V1_BY_WORTH = ("name=systemd", "cpu", "cpuacct", "memory", "pids", "cpuset")
"""v1 hierarchies by how well they identify a process. The pod sources use the same order."""

# Positions counted after the closing parenthesis of the name: ``state`` is 0.
_FLAGS, _UTIME, _STIME, _START, _PROCESSOR = 6, 11, 12, 19, 36
_KWORKER = re.compile(r"kworker/(?!R-)[^+-]*")


class SchedStat(NamedTuple):
    """CPU time and run-queue wait of a thread since it was forked, in nanoseconds."""

    run_ns: int
    delay_ns: int


class StatLine(NamedTuple):
    """The parts of a ``stat`` line that observation uses. ``start_ticks`` counts from boot."""

    comm: str
    is_kthread: bool
    cpu_ticks: int
    start_ticks: int
    cpu: int


def parse_schedstat(content: bytes) -> SchedStat:
    """Parse ``run_ns delay_ns timeslices``. Raise ValueError if it is malformed."""
    run, delay, _ = content.split()
    return SchedStat(int(run), int(delay))


def parse_stat(content: bytes) -> StatLine:
    """Parse a ``stat`` line. Raise ValueError if it is truncated or malformed.

    The kernel does not escape the name. It may contain blanks, parentheses and newlines, so it
    ends at the *last* closing parenthesis. Bytes that are not UTF-8 become U+FFFD.
    """
    opening, closing = content.index(b"("), content.rindex(b")")
    fields = content[closing + 1 :].split(None, _PROCESSOR + 1)
    if len(fields) <= _PROCESSOR:
        raise ValueError("the stat line is truncated")
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
    # To a kworker's name the kernel appends its current work (wq_worker_comm), which changes all
    # the time and is no part of the task's name. The engine matches the bare name.
    bare = _KWORKER.match(name)
    return (bare.group() if bare else name)[:COMM_LENGTH]


def parse_cgroup(content: bytes, namespace: str = "") -> str:
    """Return a process' cgroup in the engine's form: ``a/b/``, the root is ``/``.

    It is the v2 path. If that is the root, as on a hybrid host with its workloads under v1
    controllers, it is the first longer path of ``V1_BY_WORTH``. It is empty without any path.
    *namespace* is the path of the reader's cgroup namespace, to which the v2 path is relative
    (``cgroup_namespace``).
    """
    paths: dict[str, str] = {}
    for line in kernel_lines(content.decode("utf-8", "replace")):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if path.startswith("/"):
            if number == "0":
                paths[UNIFIED] = engine_path(_of_host(path, namespace) if namespace else path)
            else:
                paths.update(dict.fromkeys(controllers.split(","), engine_path(path)))
    below_root = (paths[name] for name in (UNIFIED, *V1_BY_WORTH) if paths.get(name, "/") != "/")
    return next(below_root, "/" if paths else "")


def _of_host(path: str, namespace: str) -> str:
    """Return a path that *namespace* shows with ``..`` as the host shows it."""
    return normpath(f"/{namespace}/{path}")


@cache
def cgroup_namespace() -> str:
    """Return the path of this process's cgroup namespace (``a/b``), empty in the host's."""
    return hidden_path(Roots())


def engine_path(path: str) -> str:
    """Return a cgroup path in the engine's form: no leading slash, one trailing slash.

    In place of a path that is too long to be read, it is that of the nearest cgroup above.
    """
    bare = path.removesuffix(" (deleted)").strip("/")
    if len(bare) > LONGEST_PATH:
        bare = bare[: LONGEST_PATH + 1].rpartition("/")[0]
    return f"{bare}/" if bare else "/"
