"""The names of all processes, and of the main process of a cgroup."""

import os
from pathlib import Path

from temper_core.node.polled_values import PolledValues


class ProcessNames:
    """The name of every process on the host. Few are read anew at each poll."""

    def __init__(self, proc_root: Path | str = Path("/proc")) -> None:
        self._proc_root = Path(proc_root)
        self._names = PolledValues(self._name)

    def refresh(self) -> frozenset[str]:
        """Return the names of the current processes. Empty without /proc."""
        try:
            pids = [name for name in os.listdir(self._proc_root) if name.isdecimal()]  # noqa: PTH208 - only the names are needed
        except OSError:
            return frozenset()
        return frozenset(filter(None, self._names.refresh(pids).values()))

    def _name(self, pid: str) -> str:
        return process_name(self._proc_root, pid)


def process_name(proc_root: Path, pid: str) -> str:
    """Return the name (comm) of a process, at most 15 bytes, empty if it has ended."""
    try:
        return (proc_root / pid / "comm").read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError:
        return ""


def main_process(cgroup: Path, proc_root: Path) -> str:
    """Return the name of the oldest process in *cgroup* or directly below, else an empty string.

    The manager of a cgroup starts the main process first, so its id is normally the lowest.
    """
    pids = _pids(cgroup)
    if not pids:
        pids = [pid for child in _children(cgroup) for pid in _pids(child)]
    return process_name(proc_root, str(min(pids))) if pids else ""


def _pids(cgroup: Path) -> list[int]:
    try:
        # A process of a pid namespace that we cannot see reads as 0.
        words = (cgroup / "cgroup.procs").read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return []
    return [int(word) for word in words if word.isdecimal() and word != "0"]


def _children(cgroup: Path) -> list[Path]:
    try:
        return [child for child in cgroup.iterdir() if child.is_dir()]
    except OSError:
        return []
