"""How long containers have run, from their first process."""

import os
import time
from collections.abc import Container
from pathlib import Path

from attrs import define, field

from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.node.cgroup_counters import CgroupFiles
from temper_plugin_rightsizer.node.containers import NodeContainer

PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_START_TICKS = 19
"""The field ``starttime`` of /proc/PID/stat, counted after the command (proc_pid_stat(5))."""


@define
class Starts:
    """Remembers the first process of each container, and when it started."""

    files: CgroupFiles
    proc: Path
    _known: dict[ContainerKey, tuple[int, float]] = field(factory=dict, init=False)

    def age_s(self, container: NodeContainer) -> float | None:
        """Return how long *container* has run. None if its first process is not known."""
        for path in container.programs[:1]:
            process = self.files.first_process(path)
            if process is None:
                break
            known = self._known.get(container.key)
            if known is None or known[0] != process:
                started_s = self._started_s(process)
                if started_s is None:
                    break
                known = self._known[container.key] = process, started_s
            return time.clock_gettime(time.CLOCK_BOOTTIME) - known[1]
        return None

    def keep(self, keys: Container[ContainerKey]) -> None:
        """Forget all containers but *keys*."""
        self._known = {key: known for key, known in self._known.items() if key in keys}

    def _started_s(self, process: int) -> float | None:
        """Return the start of *process* in seconds since the machine's."""
        try:
            content = (self.proc / str(process) / "stat").read_bytes()
            return int(content.rpartition(b")")[2].split()[_START_TICKS]) / _TICKS_PER_S
        except (OSError, ValueError, IndexError):
            return None
