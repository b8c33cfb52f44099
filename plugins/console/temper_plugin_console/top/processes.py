"""The user and the memory of the processes of threads, from ``/proc`` of this host (proc(5))."""

import os
import pwd
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from temper_core.observed import Row, count, text

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
RESIDENT = 1
"""The place of the resident pages in ``/proc/PID/statm``."""


@frozen
class Process:
    """A process: the name of its user, and its resident memory in bytes."""

    user: str
    memory_bytes: int


def read_processes(
    threads: Iterable[Row], proc_root: Path = Path("/proc")
) -> Mapping[int, Process]:
    """Return the processes of *threads* by id, without those that are not on this host any more.

    The agent may be in another PID namespace. So a process counts only if its thread has the name
    that the agent gave.
    """
    found: dict[int, Process] = {}
    for thread in threads:
        tid, tgid = count(thread, "tid"), count(thread, "tgid")
        if tid and tgid and tgid not in found:
            process = _read(proc_root / str(tgid), tid, text(thread, "comm"))
            if process is not None:
                found[tgid] = process
    return found


def _read(directory: Path, tid: int, comm: str) -> Process | None:
    try:
        name = (directory / "task" / str(tid) / "comm").read_text("utf-8", "replace")
        pages = int((directory / "statm").read_text("ascii").split()[RESIDENT])
        owner = directory.stat().st_uid
    except (OSError, ValueError, IndexError):
        return None
    is_same = name.removesuffix("\n") == comm
    return Process(user_name(owner), pages * PAGE_BYTES) if is_same else None


@lru_cache(maxsize=256)
def user_name(uid: int) -> str:
    """Return the name of a user, the number for one without a name on this host."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)
