"""The names of all processes."""

import os
from pathlib import Path

from temper_core.node.container_programs import process_name
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
