"""Reads that may block for good, on threads that can be abandoned.

A read of a process's command line takes the lock of its memory (``mmap_lock``, fs/proc/base.c). A
process that hangs in a page fault may hold it for minutes, and a process of any user may hang so
on purpose, by a file system of its own.
"""

import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from attrs import define

from temper_core.kernel_text import kernel_lines, read_kernel_text

WAIT_S = 0.1
"""Longer than any read that is not blocked, shorter than the acceptable delay of a hint."""
MOST_STUCK = 32
OWNER_STUCK = 2
"""Abandoned threads for the processes of one owner. Its other processes are not read meanwhile."""
SLOW_S = 0.005
"""A read that takes longer is charged to the owner of the process."""
OWNER_WAIT_S = 0.3
"""The time that the slow reads of one owner may take in ``WINDOW_S``."""
WINDOW_S = 10.0
OWNER_DEPTH, POD_DEPTH, USER_DEPTH = 3, 8, 2
"""The components of a cgroup's path that name its owner, those in which a pod is looked for, and
those of a user with many sessions."""
USER_SLICE, LXC_PAYLOAD = "user.slice", "lxc.payload."
"""Tops whose users, or whose container's root, make all cgroups below (lxc.container.conf(5))."""
UNITS = (".service", ".scope")
POD = re.compile(r"(.*-)?pod[0-9a-f_-]{32,36}(\.slice)?")
"""The cgroup of a pod of Kubernetes. Each of its containers has one below."""
CONTAINER = re.compile(r"(.*-)?[0-9a-f]{64}(\.scope)?")
"""The cgroup of a container, which chooses the names below it."""

OwnerOf = Callable[[int], str]


def cgroup_owner(proc_root: Path | str) -> OwnerOf:
    """Return a function that names the owner of a process by the process's cgroup.

    From a private cgroup namespace, which a container has, the kernel shows a path outside of it
    with ``..`` for each level up (cgroup_namespaces(7)).
    """

    def owner_of(pid: int) -> str:
        with suppress(OSError):
            return _owner(_path(read_kernel_text(Path(f"{proc_root}/{pid}/cgroup"))))
        return ""

    return owner_of


def _path(proc_cgroup: str) -> list[str]:
    """Return the components of the cgroup v2 path, on a hybrid host of a v1 path."""
    paths: dict[str, list[str]] = {}
    for line in kernel_lines(proc_cgroup):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        paths[controllers] = [part for part in path.split("/") if part not in ("", "..")]
    by_worth = (paths.get(""), paths.get("name=systemd"), *paths.values())
    return next((path for path in by_worth if path), [])


def _owner(parts: list[str]) -> str:
    """Return the pod, unit or user that *parts* belong to. It makes its own cgroups below that."""
    if parts[:1] == [USER_SLICE]:
        return "/".join(parts[:USER_DEPTH])
    if parts and parts[0].startswith(LXC_PAYLOAD):
        return parts[0]
    for depth, part in enumerate(parts[:POD_DEPTH], 1):
        # k3s.service/kubepods/... is above the pods of all users.
        is_unit = 1 < depth <= OWNER_DEPTH and part.endswith(UNITS)
        if is_unit or POD.fullmatch(part) or CONTAINER.fullmatch(part):
            return "/".join(parts[:depth])
    return "/".join(parts[:OWNER_DEPTH])


class PatientReader:
    """Calls *read* with a process id on a separate thread, and waits no longer than *wait_s*.

    A thread that does not answer is abandoned and replaced. With *most_stuck* abandoned threads
    no read starts until one of them finishes. *owner_of* names the owner of a process. An owner
    whose processes block, or whose slow answers took *owner_wait_s*, is not read for a while, and
    delays no other.
    """

    def __init__(
        self,
        read: Callable[[int], str],
        wait_s: float = WAIT_S,
        most_stuck: int = MOST_STUCK,
        owner_of: OwnerOf = str,
        owner_wait_s: float = OWNER_WAIT_S,
    ) -> None:
        self._read = read
        self._wait_s = wait_s
        self._most_stuck = most_stuck
        self._owner_of = owner_of
        self._owner_wait_s = owner_wait_s
        self._stuck: dict[int, _Abandoned] = {}
        self._slow: dict[str, _SlowOwner] = {}
        self._reader: _Reader | None = None

    def read(self, number: int) -> str | None:
        """Return the result of the read.

        None if it blocks, its owner is not read now, or no thread can be started.
        """
        now = time.monotonic()
        self._forget(now)
        if number in self._stuck or len(self._stuck) >= self._most_stuck:
            return None
        # The owner is only of interest once some process was slow.
        owner = self._owner_of(number) if self._slow or self._stuck else None
        if owner is not None and self._is_refused(owner):
            return None
        try:
            self._reader = self._reader or _Reader(self._read)
        except RuntimeError:  # the user or the cgroup has no thread left
            return None
        try:
            return self._reader.ask(number, self._wait_s)
        except queue.Empty:
            owner = self._owner_of(number) if owner is None else owner
            self._stuck[number] = _Abandoned(self._reader, owner)
            self._reader.leave()
            self._reader = None
            return None
        finally:
            took_s = time.monotonic() - now
            if took_s >= SLOW_S:
                owner = self._owner_of(number) if owner is None else owner
                self._slow.setdefault(owner, _SlowOwner(now)).waited_s += took_s

    def close(self) -> None:
        """End the thread."""
        if self._reader is not None:
            self._reader.leave()
            self._reader = None

    def _forget(self, now: float) -> None:
        self._stuck = {pid: left for pid, left in self._stuck.items() if left.reader.is_busy}
        for owner in [owner for owner, slow in self._slow.items() if now >= slow.ends_at]:
            del self._slow[owner]

    def _is_refused(self, owner: str) -> bool:
        slow = self._slow.get(owner)
        if slow is not None and slow.waited_s >= self._owner_wait_s:
            return True
        return Counter(left.owner for left in self._stuck.values())[owner] >= OWNER_STUCK


@define
class _SlowOwner:
    """The time that reads of an owner's processes took since ``began_at`` (monotonic seconds)."""

    began_at: float
    waited_s: float = 0.0

    @property
    def ends_at(self) -> float:
        return self.began_at + WINDOW_S


@define
class _Abandoned:
    reader: "_Reader"
    owner: str


class _Reader:
    """One thread that serves read requests one by one until ``leave``."""

    def __init__(self, read: Callable[[int], str]) -> None:
        self._read = read
        self._asked: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="process-reader", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether it still reads. Meaningful only after ``leave``."""
        return self._thread.is_alive()

    def ask(self, number: int, wait_s: float) -> str:
        """Return the answer. Raise queue.Empty if there is none within *wait_s*."""
        self._asked.put(number)
        return self._answers.get(timeout=wait_s)

    def leave(self) -> None:
        """End the thread after its current read."""
        self._asked.put(None)

    def _work(self) -> None:
        while (number := self._asked.get()) is not None:
            self._answers.put(self._read(number))
