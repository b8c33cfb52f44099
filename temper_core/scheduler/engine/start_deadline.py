"""How long a start may take, measured by what the engine does rather than by the clock alone.

Nearly all of a start is the kernel's verifier, which runs on the engine's own thread: on a busy or
slow node the same work takes many times as long, and is no failure for that.
"""

import math
import os
from pathlib import Path

from temper_core.scheduler.host.roots import read_line

WALL_TIME_FACTOR = 10
"""A start fails after ten times its CPU time of wall time, whatever it does."""


class StartDeadline:
    """Ends a start that used *limit_s* of CPU, ten times that in all, or stood still for as long.

    Moments are on the clock of ``look`` and ``passed``, in seconds.
    """

    def __init__(self, limit_s: float, now: float) -> None:
        self._limit_s = limit_s
        self._seen_s: float | None = None
        self.restart(now)

    def restart(self, now: float, *, idle_s: float = math.inf) -> None:
        """Give it the whole time again, as after it stood at a gate.

        It may stand still for the limit, or for *idle_s* where that is less.
        """
        self._started_at = self._progress_at = now
        self._idle_s = min(self._limit_s, idle_s)
        self._before_s = self._seen_s or 0.0

    def look(self, now: float, cpu_s: float | None) -> None:
        """Note the CPU time of the process so far; None where it makes no progress or is gone."""
        if cpu_s is not None and (self._seen_s is None or cpu_s > self._seen_s):
            self._seen_s = cpu_s
            self._progress_at = now

    def passed(self, now: float) -> str:
        """Say which limit it has reached at *now*. Empty while it has time."""
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
    """Return the CPU time of all threads a process ever had; None where it is gone."""
    _, _, fields = (read_line(proc / str(pid) / "stat") or "").rpartition(")")
    # proc(5): fields 14 and 15, and two of them are before the parenthesis that closes the name
    ticks = fields.split()[11:13]
    if len(ticks) != 2 or not all(each.isdigit() for each in ticks):  # noqa: PLR2004 - user, system
        return None
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
