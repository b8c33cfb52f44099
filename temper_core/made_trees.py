"""Directories that look like /proc, a cgroup hierarchy or /sys to their readers, for tests.

Public through ``temper_core.testing``. The files are those that Temper reads, in the form of the
kernel: proc(5), ``Documentation/admin-guide/cgroup-v2.rst``, and
``Documentation/ABI/stable/sysfs-devices-system-cpu``.
"""

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from temper_core.node.cpulist import format_cpulist
from temper_core.records.machine import Cpu, MachineShape

V2_FILES = {"cgroup.controllers": "cpu memory pids\n", "cgroup.procs": ""}
V1_FILES = {"tasks": "", "cgroup.procs": ""}
STAT_FIELDS = 50
"""Fields of a ``stat`` line after the name, as Linux has written since 3.5."""
PARENT, CPU_TICKS, STARTED, PROCESSOR = 1, 11, 19, 36
"""Positions in a ``stat`` line, counted after the name: ``state`` is 0."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
NS_PER_S = 1_000_000_000
CPUS = "devices/system/cpu"
NODES = "devices/system/node"


def write_files(root: Path, files: Mapping[str, str]) -> Path:
    """Write the texts of *files*, by their paths below *root*. Return *root*."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def make_cgroup(root: Path, path: str, **files: str) -> Path:
    """Make the cgroup *path* below *root*. Return its directory.

    ``cpu_max="..."`` writes ``cpu.max``: the first underscore of a name becomes a dot.
    """
    directory = root / path
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("_", ".", 1)).write_text(text)
    return directory


def make_hierarchy(root: Path, paths: Iterable[str] = (), *, version: int = 2) -> Path:
    """Make a hierarchy of cgroup v2, or v1, with the cgroups *paths*. Return *root*."""
    write_files(root, V2_FILES if version == 2 else V1_FILES)  # noqa: PLR2004 - the version
    for path in paths:
        make_cgroup(root, path)
    return root


def make_process(  # noqa: PLR0913 - as many fields as the kernel has of a process
    proc: Path,
    pid: int,
    name: str,
    cgroup: Path | None = None,
    *,
    parent: int = 1,
    arguments: Iterable[str] = (),
    age_s: float = 3600.0,
) -> None:
    """Make a process below *proc*: ``comm``, ``stat`` and ``cmdline``.

    It is added to ``cgroup.procs`` of the directory *cgroup*, if one is given. It began *age_s*
    seconds ago, or at the boot if that is later.
    """
    command_line = "".join(f"{argument}\0" for argument in arguments)
    stat = stat_line(pid, name, parent=parent, started_ticks=_ticks_of_age(age_s))
    files = {"comm": f"{name}\n", "stat": stat, "cmdline": command_line}
    write_files(proc, {f"{pid}/{file}": text for file, text in files.items()})
    if cgroup is not None:
        with (cgroup / "cgroup.procs").open("a") as file:
            file.write(f"{pid}\n")


def make_task(  # noqa: PLR0913 - as many fields as the kernel has of a thread
    proc: Path,
    pid: int,
    tid: int,
    name: str,
    *,
    run_ns: int = 0,
    delay_ns: int = 0,
    runs: int = 1,
    cpu: int = 0,
    age_s: float = 3600.0,
) -> None:
    """Make the thread *tid* of the process *pid* below *proc*: ``comm``, ``stat``, ``schedstat``.

    *run_ns* and *delay_ns* are the nanoseconds for which it ran and waited for a CPU since it
    began, *runs* the number of times that it got a CPU.
    """
    ticks = run_ns * TICKS_PER_S // NS_PER_S
    stat = stat_line(tid, name, cpu_ticks=ticks, started_ticks=_ticks_of_age(age_s), cpu=cpu)
    files = {"comm": f"{name}\n", "stat": stat, "schedstat": f"{run_ns} {delay_ns} {runs}\n"}
    write_files(proc, {f"{pid}/task/{tid}/{file}": text for file, text in files.items()})


def stat_line(
    pid: int,
    name: str,
    *,
    parent: int = 1,
    cpu_ticks: int = 0,
    started_ticks: int = 0,
    cpu: int = 0,
) -> str:
    """Return the line of ``/proc/PID/stat``. Times are in clock ticks, from boot. Others are 0."""
    fields = ["S", *["0"] * (STAT_FIELDS - 1)]
    values = ((PARENT, parent), (CPU_TICKS, cpu_ticks), (STARTED, started_ticks), (PROCESSOR, cpu))
    for position, value in values:
        fields[position] = str(value)
    return f"{pid} ({name}) {' '.join(fields)}\n"


def make_sysfs(root: Path, machine: MachineShape) -> Path:
    """Write the topology of *machine* below *root*, for ``read_machine(root)``. Return *root*."""
    online = [cpu.id for cpu in machine.cpus]
    lists = {
        "online": online,
        "possible": (*online, *machine.offline),
        "present": (*online, *machine.offline),
        "isolated": machine.isolated,
    }
    write_files(root, {f"{CPUS}/{name}": f"{format_cpulist(ids)}\n" for name, ids in lists.items()})
    for cpu in machine.cpus:
        write_files(root / CPUS / f"cpu{cpu.id}", _cpu_files(cpu, machine))
    for node in {cpu.node for cpu in machine.cpus}:
        ids = format_cpulist(cpu.id for cpu in machine.cpus if cpu.node == node)
        write_files(root, {f"{NODES}/node{node}/cpulist": f"{ids}\n"})
    return root


def _cpu_files(cpu: Cpu, machine: MachineShape) -> dict[str, str]:
    siblings = format_cpulist(machine.siblings_of(cpu.id))
    cache = format_cpulist(each.id for each in machine.cpus if each.llc == cpu.llc)
    files = {
        "topology/core_id": str(cpu.core),
        "topology/physical_package_id": str(cpu.socket),
        "topology/core_cpus_list": siblings,
        "cache/index0/level": "1",
        "cache/index0/type": "Data",
        "cache/index0/shared_cpu_list": siblings,
        "cache/index1/level": "3",
        "cache/index1/type": "Unified",
        "cache/index1/shared_cpu_list": cache,
    }
    if machine.is_hybrid:
        files["cpu_capacity"] = str(cpu.capacity)
    return {path: f"{text}\n" for path, text in files.items()}


def _ticks_of_age(age_s: float) -> int:
    """Return when a process of *age_s* seconds began, in clock ticks from boot."""
    started_s = max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - age_s)
    return int(started_s * TICKS_PER_S)
