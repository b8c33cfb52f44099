"""The load of each CPU between two reads of ``/proc/stat`` (proc(5))."""

from collections.abc import Mapping
from pathlib import Path

FIELDS = 8
"""user nice system idle iowait irq softirq steal. Guest time is part of user and nice."""
IDLE, IOWAIT, STEAL = 3, 4, 7

CpuTimes = Mapping[int, tuple[int, int]]
"""Clock ticks by CPU: busy, and total."""


def read_cpu_times(proc_root: str = "/proc") -> CpuTimes:
    """Read the ticks of every online CPU. Return no CPU if the file cannot be read."""
    try:
        lines = Path(proc_root, "stat").read_text("ascii", "replace").split("\n")
    except OSError:
        return {}
    times: dict[int, tuple[int, int]] = {}
    for line in lines:
        name, *values = line.split()[: FIELDS + 1] or [""]
        if not (name.startswith("cpu") and name[3:].isdecimal() and len(values) == FIELDS):
            continue
        ticks = [int(value) if value.isdecimal() else 0 for value in values]
        busy = sum(ticks) - ticks[IDLE] - ticks[IOWAIT] - ticks[STEAL]
        times[int(name[3:])] = (busy, sum(ticks))
    return times


def busy_between(before: CpuTimes, after: CpuTimes) -> Mapping[int, float]:
    """Return the busy share 0..1 of each CPU, without CPUs that were just added."""
    shares: dict[int, float] = {}
    for cpu, (busy, total) in after.items():
        busy_before, total_before = before.get(cpu, (0, total))
        if total > total_before:
            share = (busy - busy_before) / (total - total_before)
            shares[cpu] = min(1.0, max(0.0, share))
    return shares
