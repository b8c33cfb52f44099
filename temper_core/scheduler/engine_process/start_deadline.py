"""The deadline of a start, measured in CPU time rather than in wall time alone.

Nearly all of a start is the kernel's verifier, which runs on the engine's own thread. On a busy or
slow node the same work takes many times as long and is no failure.
"""

import math
import os
from pathlib import Path

from temper_core.scheduler.host.roots import read_line

WALL_TIME_FACTOR = 10
"""A start fails after a wall time of ten times its limit of CPU time."""


class StartDeadline:
    """Limits a start: *limit_s* of CPU, ten times that of wall time, *limit_s* without progress.

    All times are in seconds. *now* is a reading of one monotonic clock.
    """

    def __init__(self, limit_s: float, now: float) -> None:
        self._limit_s = limit_s
        self._seen_s: float | None = None
        self.restart(now)

    def restart(self, now: float, *, idle_s: float = math.inf) -> None:
        """Start all limits again, for example after a wait at the gate.

        The limit without progress becomes *idle_s* if that is less.
        """
        self._started_at = self._progress_at = now
        self._idle_s = min(self._limit_s, idle_s)
        self._before_s = self._seen_s or 0.0

    def look(self, now: float, cpu_s: float | None) -> None:
        """Record the process's CPU time so far, None if it makes no progress or is gone."""
        if cpu_s is not None and (self._seen_s is None or cpu_s > self._seen_s):
            self._seen_s = cpu_s
            self._progress_at = now

    def passed(self, now: float) -> str:
        """Return which limit is reached at *now*, empty if none is."""
        if self._used_s >= self._limit_s:
            return f"it used {self._used_s:.0f} s of CPU"
        if now - self._started_at >= WALL_TIME_FACTOR * self._limit_s:
            return f"it took {now - self._started_at:.0f} s"
        if now - self._progress_at >= self._idle_s:
            return f"it did nothing for {now - self._progress_at:.0f} s"
        return ""

    @property
    def _used_s(self) -> float:
        return (self._seen_s or 0.0) - self._before_s

    def __str__(self) -> str:
        return f"used {self._used_s:.0f} of {self._limit_s:g} s of CPU"


def cpu_seconds(pid: int, proc: Path = Path("/proc")) -> float | None:
    """Return the CPU time of all threads of a process, ended ones included, None if it is gone."""
    _, _, fields = (read_line(proc / str(pid) / "stat") or "").rpartition(")")
    # proc(5): fields 14 and 15. Two fields precede the parenthesis that closes the name.
    ticks = fields.split()[11:13]
    if len(ticks) != 2 or not all(tick.isdigit() for tick in ticks):  # noqa: PLR2004 - user, system
        return None
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
