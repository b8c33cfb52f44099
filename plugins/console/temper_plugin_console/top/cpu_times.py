"""How busy each CPU was between two looks, as ``/proc/stat`` counts it (proc(5))."""

from collections.abc import Mapping
from pathlib import Path

FIELDS = 8
"""user nice system idle iowait irq softirq steal. A guest's time is part of user and nice."""
IDLE, IOWAIT, STEAL = 3, 4, 7

CpuTimes = Mapping[int, tuple[int, int]]
"""Ticks by CPU: busy, and all together."""


def read_cpu_times(proc_root: str = "/proc") -> CpuTimes:
    """Read the ticks of every online CPU. Nothing where the file cannot be read."""
    try:
        lines = Path(proc_root, "stat").read_text("ascii", "replace").splitlines()
    except OSError:
        return {}
    found: dict[int, tuple[int, int]] = {}
    for line in lines:
        name, *given = line.split()[: FIELDS + 1] or [""]
        if not (name.startswith("cpu") and name[3:].isdecimal() and len(given) == FIELDS):
            continue
        ticks = [int(each) if each.isdecimal() else 0 for each in given]
        busy = sum(ticks) - ticks[IDLE] - ticks[IOWAIT] - ticks[STEAL]
        found[int(name[3:])] = (busy, sum(ticks))
    return found


def busy_between(before: CpuTimes, after: CpuTimes) -> Mapping[int, float]:
    """Return the share 0..1 for which each CPU was busy. Nothing of a CPU that was just added."""
    found: dict[int, float] = {}
    for cpu, (busy, total) in after.items():
        busy_before, total_before = before.get(cpu, (0, total))
        if total > total_before:
            share = (busy - busy_before) / (total - total_before)
            found[cpu] = min(1.0, max(0.0, share))
    return found
