"""The threads on each CPU at this moment, from ``/proc``, for hosts without an agent."""

import os
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from temper_core import thread_owner

# proc_pid_stat(5), counted from the field after the name: 3 is the state, 39 the CPU.
_STATE, _PROCESSOR = 0, 36


@frozen
class Occupant:
    """A thread on a CPU. ``cpu_used`` in CPUs is known only from an agent."""

    cpu: int
    tid: int
    tgid: int
    comm: str
    pod: str = ""
    layer: str = ""
    cpu_used: float | None = None


def running_threads(proc_root: Path = Path("/proc")) -> list[Occupant]:
    """Return the threads that run or wait for a CPU now, except those of this process."""
    own = str(os.getpid())
    tgids = [pid for pid in _numbers_in(proc_root) if pid != own]
    occupants = (
        _occupant(proc_root, tgid, tid) for tgid in tgids for tid in _tids(proc_root, tgid)
    )
    return sorted(filter(None, occupants), key=lambda thread: (thread.cpu, thread.tid))


def _numbers_in(directory: Path) -> list[str]:
    try:
        return [entry.name for entry in directory.iterdir() if entry.name.isdecimal()]
    except OSError:
        # The process may have ended.
        return []


def _tids(proc_root: Path, tgid: str) -> Iterator[str]:
    yield from _numbers_in(proc_root / tgid / "task")


def _occupant(proc_root: Path, tgid: str, tid: str) -> Occupant | None:
    directory = proc_root / tgid / "task" / tid
    # The name may hold anything, brackets and newlines included.
    before, _, after = _text(directory / "stat").rpartition(")")
    fields = after.split()
    if len(fields) <= _PROCESSOR or fields[_STATE] != "R":
        return None
    comm = before.partition("(")[2]
    pod = thread_owner(_text(directory / "cgroup"))
    return Occupant(int(fields[_PROCESSOR]), int(tid), int(tgid), comm, pod)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
