"""Selects the processes of a recording: trees below root processes, or the members of cgroups."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from temper_core import InputError, directories_below
from temper_plugin_trainer.proc_files import read_once

# Positions counted after the closing parenthesis of the name (proc_pid_stat(5)).
_PARENT, _START = 1, 19
_STAT_SIZE = 1024


class ProcessSource(Protocol):
    """Selects the processes to record."""

    def processes(self) -> Mapping[int, str]:
        """Return the current process ids, each with its container's name or an empty string."""
        ...


class ProcessTrees:
    """Processes and their descendants, which stay members if they are reparented.

    A process is known by its number and its start, since the number of an ended one may be taken by
    a process that is no descendant. Raises InputError for a process that does not exist.
    """

    def __init__(self, roots: Iterable[int], proc_root: Path | str = Path("/proc")) -> None:
        self._root = str(proc_root)
        self._births: dict[int, _Birth] = {}
        self._members: dict[int, _Birth] = {}
        for pid in sorted(set(roots)):
            birth = self._birth(pid)
            if birth is None:
                raise InputError(f"--pid {pid}: there is no such process")
            self._members[pid] = birth

    def processes(self) -> Mapping[int, str]:
        """Return the live members. Their containers are unknown."""
        alive = {int(name) for name in os.listdir(self._root) if name.isdigit()}  # noqa: PTH208 - thousands of names, twice a second
        self._read_births(alive)
        self._members = {
            pid: self._births[pid]
            for pid, birth in self._members.items()
            if pid in self._births and self._births[pid].start_ticks == birth.start_ticks
        }
        found = [pid for pid in self._births if self._descends(pid)]
        self._members.update((pid, self._births[pid]) for pid in found)
        return dict.fromkeys(self._members.keys() - {os.getpid()}, "")

    def _read_births(self, alive: set[int]) -> None:
        for pid in self._births.keys() - alive:
            del self._births[pid]
        # Others than members are read once, which saves most of the time of a look. If the number
        # of one is taken, its old birth stays, and makes no member: see ``_descends``.
        for pid in alive - (self._births.keys() - self._members.keys()):
            birth = self._birth(pid)
            if birth is None:  # it has just ended
                self._births.pop(pid, None)
            else:
                self._births[pid] = birth

    def _descends(self, pid: int) -> bool:
        path = set()
        while pid in self._births and pid not in path:
            if pid in self._members:
                return True
            path.add(pid)
            birth = self._births[pid]
            parent = self._births.get(birth.parent)
            # A younger one has taken the number of the parent.
            if parent is None or parent.start_ticks > birth.start_ticks:
                return False
            pid = birth.parent
        return False

    def _birth(self, pid: int) -> "_Birth | None":
        """Read the parent and the start of a process. None if it has ended."""
        try:
            stat = read_once(f"{self._root}/{pid}/stat", _STAT_SIZE)
        except OSError:
            return None
        words = stat.rpartition(b")")[2].split()
        return _Birth(int(words[_PARENT]), int(words[_START])) if len(words) > _START else None


class _Birth(NamedTuple):
    """The parent of a process when it was read, and its start in clock ticks since the boot."""

    parent: int
    start_ticks: int


class CgroupProcesses:
    """The processes in cgroups and their descendants. *container* maps a directory to its name."""

    def __init__(
        self, directories: Iterable[Path], container: Callable[[Path], str] = lambda _: ""
    ) -> None:
        self._directories = tuple(directories)
        self._container = container

    def processes(self) -> Mapping[int, str]:
        """Return the current process ids with their containers."""
        own = os.getpid()
        return {
            pid: self._container(directory)
            for directory in self._all()
            for pid in _processes_in(directory)
            if pid != own
        }

    def _all(self) -> Iterator[Path]:
        for top in self._directories:
            yield from map(Path, directories_below(top))


def _processes_in(directory: Path) -> list[int]:
    try:
        words = (directory / "cgroup.procs").read_text(encoding="ascii", errors="replace").split()
    except OSError:  # just removed, or threaded: then the parent cgroup lists the processes
        return []
    # Processes of pid namespaces outside of ours read as 0.
    return [int(word) for word in words if word.isdecimal() and word != "0"]
