"""Selects the processes of a recording: trees below root processes, or the members of cgroups."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from temper_core import InputError, directories_below
from temper_plugin_trainer.proc_files import read_once

# Positions counted after the closing parenthesis of the name (proc_pid_stat(5)).
_PARENT = 1
_STAT_SIZE = 1024


class ProcessSource(Protocol):
    """Selects the processes to record."""

    def processes(self) -> Mapping[int, str]:
        """Return the current process ids, each with its container's name or an empty string."""
        ...


class ProcessTrees:
    """Processes and their descendants, which stay members if they are reparented.

    Raises InputError for a process that does not exist.
    """

    def __init__(self, roots: Iterable[int], proc_root: Path | str = Path("/proc")) -> None:
        self._root = str(proc_root)
        self._members = set(roots)
        self._parents: dict[int, int] = {}
        for pid in sorted(self._members):
            if not Path(self._root, str(pid), "task").is_dir():
                raise InputError(f"--pid {pid}: there is no such process")

    def processes(self) -> Mapping[int, str]:
        """Return the live members. Their containers are unknown."""
        alive = {int(name) for name in os.listdir(self._root) if name.isdigit()}  # noqa: PTH208 - thousands of names, twice a second
        for pid in self._parents.keys() - alive:
            del self._parents[pid]
        # Parents are read once. A later change only means that the first parent has ended.
        for pid in alive - self._parents.keys():
            self._parents[pid] = self._parent(pid)
        self._members &= alive
        self._members.update(pid for pid in alive if self._descends(pid))
        return dict.fromkeys(self._members - {os.getpid()}, "")

    def _descends(self, pid: int) -> bool:
        path = set()
        while pid and pid not in path:
            if pid in self._members:
                return True
            path.add(pid)
            pid = self._parents.get(pid, 0)
        return False

    def _parent(self, pid: int) -> int:
        try:
            stat = read_once(f"{self._root}/{pid}/stat", _STAT_SIZE)
        except OSError:
            return 0
        words = stat.rpartition(b")")[2].split()
        return int(words[_PARENT]) if len(words) > _PARENT else 0


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
