"""The programs of a container: its first process, and what an init or a shell has started.

Inits, supervisors and shells start the program of many images as a child. The chain of parents is
followed through them down to the first processes that are none of these.
"""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from attrs import field, frozen

from temper_core.patient_reading import PatientReader, cgroup_owner

SHELLS = frozenset(
    {"ash", "bash", "busybox", "dash", "execlineb", "fish", "ksh", "mksh", "sh", "zsh"}
)
INITS = frozenset(
    {
        "catatonit",
        "docker-init",
        "dumb-init",
        "init",
        "mariadbd-safe",
        "mysqld_safe",
        "podman-init",
        "runit",
        "runsv",
        "runsvdir",
        "s6-linux-init-s",  # s6-linux-init-shutdownd, as the kernel cuts it
        "s6-supervise",
        "s6-svscan",
        "su",
        "sudo",
        "supervisord",
        "tini",
        "tini-static",
        "timeout",
    }
)
"""Names of programs that run another one as their child."""
SETTLED_S = 0.5
"""Age in seconds from which a child of an init counts. Commands of a start script end sooner."""
MOST_LISTED = 32
"""The processes of a container whose parents are read, lowest ids first."""
MOST_PROGRAMS = 8
MOST_STUCK = 64
"""Command lines that may block at a time, two of each owner."""
MOST_CHILDREN = 64
"""Cgroups directly below a container's that are looked at. It may make any number of them."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LONGEST_PATH = 4096
_COMM_END = b") "
_PARENT, _START = 1, 19
"""The fields after the name in ``/proc/<pid>/stat``: ppid is the 4th of all, starttime the 22nd."""


@frozen
class Programs:
    """The names of the programs of one container, the first process's first.

    An exec of a process in ``listened``, or of a child of one, may change the names. A new child
    of an init is among the names only from the age of ``SETTLED_S``. ``again_in_s`` is the time in
    seconds until the youngest such child has that age, or until a command line that blocked is read
    again, None without either. ``age_s`` is the first
    process's age in seconds, None without a process.
    """

    names: tuple[str, ...] = ()
    listened: frozenset[int] = field(factory=frozenset)
    again_in_s: float | None = None
    age_s: float | None = None


_FirstArgument = Callable[[int], str | None]
"""Returns the first argument of a process's command line, None if the read blocks."""


class _Blocked(Exception):  # noqa: N818 - reads as the fact it reports
    """The command line of a process cannot be read now."""


@frozen
class _Process:
    pid: int
    name: str
    parent: int
    age_s: float


class ProgramReader:
    """Reads the programs of containers from the processes below *proc_root*.

    A process can hold up the readers of its command line for as long as it likes. The first
    process of such a container counts as its program, and the container is read again.
    """

    def __init__(self, proc_root: Path = Path("/proc")) -> None:
        self._proc_root = proc_root
        self._first_arguments = PatientReader(
            self._first_argument, most_stuck=MOST_STUCK, owner_of=cgroup_owner(proc_root)
        )

    def read(self, cgroup: Path, known: Collection[str] = ()) -> Programs:
        """Return the programs of the container whose processes *cgroup*, or its children, list.

        A child of an init with a name in *known* counts at any age. Unreadable or ended processes
        are left out. The cgroup's manager starts the first process before all others, so that its
        id is normally the lowest.
        """
        pids = sorted(cgroup_pids(cgroup))
        first = _process(pids[0], self._proc_root, _since_boot_s()) if pids else None
        if first is None:
            return Programs()
        again_in_s = None
        try:
            if self._is_init(first):
                return self._below(first, pids, known)
        except _Blocked:
            again_in_s = SETTLED_S
        return Programs((first.name,), frozenset({first.pid}), again_in_s, first.age_s)

    def close(self) -> None:
        """End the thread that reads command lines."""
        self._first_arguments.close()

    def _is_init(self, process: _Process) -> bool:
        return _is_init(process, self._first_arguments.read)

    def _first_argument(self, pid: int) -> str:
        line = _content(f"{self._proc_root}/{pid}/cmdline", LONGEST_PATH)
        return line.partition(b"\0")[0].decode(errors="replace")

    def _below(self, first: _Process, pids: Sequence[int], known: Collection[str]) -> Programs:
        """Follow the inits from *first*, which is one, to the programs among *pids*."""
        children = _by_parent(pids[:MOST_LISTED], self._proc_root)
        names: set[str] = set()
        listened, pending = {first.pid}, [first.pid]
        again_in_s: float | None = None
        while pending:
            for child in children.get(pending.pop(), ()):
                if self._is_init(child):
                    listened.add(child.pid)
                    pending.append(child.pid)
                elif child.age_s >= SETTLED_S or child.name in known:
                    names.add(child.name)
                else:
                    again_in_s = max(again_in_s or 0.0, SETTLED_S - child.age_s)
        programs = sorted(names)[:MOST_PROGRAMS]
        return Programs((first.name, *programs), frozenset(listened), again_in_s, first.age_s)


def _is_init(process: _Process, first_argument: _FirstArgument) -> bool:
    """Whether *process* is an init, a supervisor, a shell or a shell's script. May raise _Blocked.

    A script has the name of its file. The kernel puts the interpreter's path before it in the
    command line (execve(2)).
    """
    if process.name in INITS or process.name in SHELLS:
        return True
    interpreter = first_argument(process.pid)
    if interpreter is None:
        raise _Blocked
    return PurePosixPath(interpreter.removeprefix("-")).name in SHELLS


def process_name(proc_root: Path, pid: int | str) -> str:
    """Return the name (comm) of a process, at most 15 bytes, empty if it has ended."""
    return _content(f"{proc_root}/{pid}/comm").decode(errors="replace").rstrip("\n")


def cgroup_pids(cgroup: Path) -> list[int]:
    """Return the processes directly in *cgroup*, or those of its first children if it has none."""
    folder = os.fspath(cgroup)
    return _pids(folder) or [pid for child in _children(folder) for pid in _pids(child)]


def _by_parent(pids: Sequence[int], proc_root: Path) -> Mapping[int, Sequence[_Process]]:
    children: dict[int, list[_Process]] = {}
    now_s = _since_boot_s()
    for pid in pids:
        if (process := _process(pid, proc_root, now_s)) is not None:
            children.setdefault(process.parent, []).append(process)
    return children


def _since_boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _process(pid: int, proc_root: Path, now_s: float) -> _Process | None:
    """Read ``/proc/<pid>/stat`` (proc(5)). None if the process has ended."""
    before, _, after = _content(f"{proc_root}/{pid}/stat").rpartition(_COMM_END)
    fields = after.split()
    if len(fields) <= _START:
        return None
    name = before.partition(b"(")[2].decode(errors="replace")
    age_s = now_s - int(fields[_START]) / TICKS_PER_S
    return _Process(pid, name, int(fields[_PARENT]), max(0.0, age_s))


def _pids(cgroup: str) -> list[int]:
    # A process of a pid namespace that we cannot see reads as 0.
    return [int(word) for word in _content(f"{cgroup}/cgroup.procs").split() if word != b"0"]


def _children(cgroup: str) -> list[str]:
    try:
        with os.scandir(cgroup) as entries:
            children = (entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
            return list(islice(children, MOST_CHILDREN))
    except OSError:
        return []


def _content(path: str, most: int = -1) -> bytes:
    """Return at most *most* bytes of a file, nothing if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - read often; Path takes twice as long
            return file.read(most) or b""
    except OSError:
        return b""
