"""The threads of the host by /proc: for recorders that the kernel does not give them to."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from posixpath import normpath

import numpy as np
from attrs import define, field

from temper_core import cgroup_namespace
from temper_plugin_tracer.capture.choosing import unified_root
from temper_plugin_tracer.capture.kernel_layout import (
    EXECUTED,
    EXITED,
    FORKED,
    LIVES,
    NAME,
    RENAMED,
)
from temper_plugin_tracer.capture.who_is_who import MOST_TIDS

INITIAL_NAMESPACE = 0xEFFF_FFFC
"""The inode of the first pid namespace (include/linux/proc_ns.h)."""
MOST_ENDED = 16_384
Row = tuple[int, int, int, int, bytes, int, int, int, int, int]
"""A ``NAME``."""


def shows_host(proc_root: str = "/proc") -> bool:
    """Whether /proc has the ids of the host's pid namespace, which the kernel's events have."""
    try:
        return Path(proc_root, "self/ns/pid").stat().st_ino == INITIAL_NAMESPACE
    except OSError:
        return False


@define(eq=False)
class LivingThreads:
    """Process, name and cgroup of each thread: read once from /proc, then followed by events.

    Of ended threads the last ``MOST_ENDED`` are kept, since a program may start them without end.
    """

    proc_root: str = "/proc"
    tgids: np.ndarray = field(factory=lambda: np.zeros(MOST_TIDS, np.uint32))
    _comms: dict[int, bytes] = field(factory=dict)
    _cgroups: dict[int, int] = field(factory=dict)
    _ended: dict[int, None] = field(factory=dict)
    """Ended threads by the order of their end."""
    _ids_of_paths: dict[str, int] = field(factory=dict)
    _unified: Path | None = field(init=False)
    _shows_host: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._unified = unified_root(self.proc_root)
        self._shows_host = shows_host(self.proc_root)

    def read(self) -> np.ndarray:
        """Return the names of all threads that live now. None if /proc is not the host's."""
        if not self._shows_host:
            return np.zeros(0, NAME)
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return as_names([self._noted(tid, LIVES, now) for tid in self._walk()])

    def know(self, tid: int, comm: bytes, ns: int) -> Row | None:
        """Take a name that an event has shown. Return its row if the thread was not known."""
        if tid in self._comms or not 0 < tid < MOST_TIDS:
            return None
        self._comms[tid] = comm
        return self._noted(tid, LIVES, ns)

    def fork(self, parent: int, child: int, comm: bytes, *, is_thread: bool, ns: int) -> Row:
        """Take a new thread."""
        tgid = int(self.tgids[parent % MOST_TIDS]) if is_thread else child
        self.tgids[child % MOST_TIDS] = tgid
        self._comms[child] = comm
        self._ended.pop(child, None)
        if not is_thread:
            of_parent = self._cgroups.get(int(self.tgids[parent % MOST_TIDS]), 0)
            self._cgroups[child] = self._cgroup_of(child) or of_parent
        return self._noted(child, FORKED, ns)

    def rename(self, tid: int, comm: bytes, ns: int) -> Row:
        """Take a new name."""
        self._comms[tid] = comm
        return self._noted(tid, RENAMED, ns)

    def execute(self, tid: int, old_tid: int, ns: int) -> Row:
        """Take an exec: the thread has the id of its process from then on."""
        self._comms[tid] = self._comms.get(old_tid, b"")
        self._ended.pop(tid, None)
        self.tgids[tid % MOST_TIDS] = tid
        return self._noted(tid, EXECUTED, ns)

    def end(self, tid: int, comm: bytes, ns: int) -> Row:
        """Take the end of a thread. Its process keeps its cgroup for other threads of it."""
        self._comms[tid] = comm
        row = self._noted(tid, EXITED, ns)
        self._ended.pop(tid, None)
        self._ended[tid] = None
        if len(self._ended) > MOST_ENDED:
            self._forget(next(iter(self._ended)))
        return row

    def _forget(self, tid: int) -> None:
        del self._ended[tid]
        self._comms.pop(tid, None)
        self._cgroups.pop(tid, None)

    def _noted(self, tid: int, kind: int, ns: int) -> Row:
        tgid = int(self.tgids[tid % MOST_TIDS])
        return ns, self._cgroups.get(tgid, 0), tid, tgid, self._comms[tid], kind, 0, 0, 0, 0

    def _walk(self) -> Iterator[int]:
        with os.scandir(self.proc_root) as entries:
            pids = [int(entry.name) for entry in entries if entry.name.isdecimal()]
        for pid in pids:
            with suppress(OSError):  # it has ended meanwhile
                tids = [task.name for task in Path(self.proc_root, f"{pid}/task").iterdir()]
                self._cgroups[pid] = self._cgroup_of(pid)
                yield from self._threads_of(pid, map(int, tids))

    def _threads_of(self, pid: int, tids: Iterator[int]) -> Iterator[int]:
        for tid in tids:
            with suppress(OSError):
                comm = Path(self.proc_root, f"{pid}/task/{tid}/comm").read_bytes()
                self._comms[tid] = comm.removesuffix(b"\n")
                self.tgids[tid % MOST_TIDS] = pid
                yield tid

    def _cgroup_of(self, pid: int) -> int:
        """Return the id of a process's cgroup of the unified hierarchy, 0 if it is not known."""
        if self._unified is None or not self._shows_host:
            return 0
        with suppress(OSError):
            content = Path(self.proc_root, f"{pid}/cgroup").read_bytes()
            path = normpath(f"/{cgroup_namespace()}/{_unified_path(content)}")
            if path not in self._ids_of_paths:
                directory = self._unified.joinpath(*filter(None, path.split("/")))
                self._ids_of_paths[path] = directory.stat().st_ino
            return self._ids_of_paths[path]
        return 0


def as_names(rows: list[Row]) -> np.ndarray:
    """Return rows as records."""
    return np.array(rows, NAME) if rows else np.zeros(0, NAME)


def _unified_path(content: bytes) -> str:
    """Return the cgroup v2 path, relative to this process's cgroup namespace."""
    for line in content.split(b"\n"):
        if line.startswith(b"0::"):
            return line.removeprefix(b"0::").decode(errors="surrogateescape")
    return ""
