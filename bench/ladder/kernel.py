"""What the kernel counts, and what the ladder needs of a machine.

Roots are parameters, so that tests give folders.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

SCHED_EXT = Path("/sys/kernel/sched_ext")
PROC = Path("/proc")
BUSY_FIELDS = slice(1, 9)
IDLE_FIELD = 4
"""Of a line of ``/proc/stat``: user to steal without the guests' share, and idle (proc(5))."""


@frozen
class Scheduler:
    """State ``enabled`` is a sched_ext scheduler, any other the stock one. Attaches since boot."""

    state: str
    attaches: int


def scheduler(sched_ext: Path = SCHED_EXT) -> Scheduler:
    """Return the kernel's scheduler now. A kernel without sched_ext has the stock one."""
    try:
        state = (sched_ext / "state").read_text().strip()
        return Scheduler(state, int((sched_ext / "enable_seq").read_text()))
    except OSError:
        return Scheduler("disabled", 0)


def idle_shares(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> dict[str, float]:
    """Return the idle share of each CPU between two readings, and of all as ``cpu``."""
    shares = {}
    for name, (idle, total) in after.items():
        was_idle, was_total = before.get(name, (0, 0))
        shares[name] = round((idle - was_idle) / max(1, total - was_total), 4)
    return shares


def cpu_times(proc: Path = PROC) -> dict[str, tuple[int, int]]:
    """Return idle and total ticks of each CPU, and of all as ``cpu``."""
    times = {}
    for line in (proc / "stat").read_text().splitlines():
        name, *_ = fields = line.split()
        if name.startswith("cpu"):
            times[name] = (int(fields[IDLE_FIELD]), sum(map(int, fields[BUSY_FIELDS])))
    return times


def cpu_stat(cgroup: Path) -> dict[str, int]:
    """Return the counts of a cgroup's ``cpu.stat``, in the kernel's names and units."""
    pairs = (line.split() for line in (cgroup / "cpu.stat").read_text().splitlines())
    return {key: int(value) for key, value in pairs}


def lacks(
    cgroup_root: Path, *, engine: bool = True, proc: Path = PROC, sched_ext: Path = SCHED_EXT
) -> Iterator[str]:
    """Yield a line for each thing that the ladder needs and this machine lacks.

    Without *engine* only the stock scheduler is measured.
    """
    if os.geteuid() != 0:
        yield "root: the ladder makes cgroups and runs the agent"
    controllers = cgroup_root / "cgroup.controllers"
    if not controllers.exists():
        yield f"a cgroup v2 hierarchy at {cgroup_root}"
    elif "cpu" not in controllers.read_text().split():
        yield f"the cpu controller in {controllers}"
    if not (proc / "self/schedstat").exists():
        yield "schedstat: a kernel with CONFIG_SCHED_INFO"
    if engine and not (sched_ext / "state").exists():
        yield "sched_ext: only the arm stock can be measured here"
