"""The stalled thread, its CPU and the thread that held that CPU, read from the kernel's dump.

The debug dump is that of Linux 6.12 to 6.18 (``scx_dump_state``): one block per CPU. A block
begins with the current task and its scheduling class. The tasks that wait on that CPU follow.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from temper_core.kernel_text import kernel_lines
from temper_core.scheduler.host.roots import read_line

STALLED_TASK = re.compile(r"(?P<task>\S.*\[\d+\]) failed to run for (?P<seconds>[\d.]+)s")
CPU_HEADING = re.compile(r"\s*CPU (\d{1,7})\s*:")
CURRENT_TASK = re.compile(r"\s*curr=(?P<task>\S.*\[\d+\]) class=(?P<class>\w+)")
ABOVE_SCHED_EXT = {
    "rt_sched_class": "real-time",
    "dl_sched_class": "deadline",
    "stop_sched_class": "stop task",
}
POLICIES = {1: "SCHED_FIFO", 2: "SCHED_RR", 6: "SCHED_DEADLINE"}
# proc(5), /proc/PID/stat, counted from the field after the name: state, processor, policy
STATE, PROCESSOR, POLICY = 0, 36, 38


@frozen
class Stall:
    """A thread that was runnable for too long. ``task`` is ``name[tid]``.

    ``cpu`` is the CPU it waited on. ``hog`` names the task that ran there if sched_ext could not
    displace it.
    """

    task: str
    seconds: str
    cpu: int | None = None
    hog: str = ""

    def __str__(self) -> str:
        place = "" if self.cpu is None else f" on CPU {self.cpu}"
        hindrance = f", held by {self.hog}" if self.hog else ""
        return f"{self.task} could not run for {self.seconds} s{place}{hindrance}"


@frozen
class RealtimeThread:
    """A runnable thread of a scheduling class above sched_ext."""

    comm: str
    tid: int
    cpu: int
    policy: str

    def __str__(self) -> str:
        return f"{self.comm}[{self.tid}] ({self.policy})"


def read_stall(message: str, dump: str, proc: Path) -> Stall | None:
    """Read the kernel's *message* and *dump*. Missing facts are looked up below *proc*.

    Returns None if the message names no thread, for example when the watchdog could not run.
    """
    stalled = STALLED_TASK.search(message)
    if stalled is None:
        return None
    task, seconds = stalled["task"], stalled["seconds"]
    cpu, hog = _from_dump(task, dump)
    if cpu is None:
        cpu = _cpu_of(task, proc)
    if not hog and cpu is not None:
        hog = next((str(thread) for thread in realtime_threads(proc) if thread.cpu == cpu), "")
    return Stall(task, seconds, cpu, hog)


def realtime_threads(proc: Path) -> Iterator[RealtimeThread]:
    """Find the runnable threads of classes above sched_ext. Reads every thread of the node."""
    for process in _numbered(proc):
        for thread in _numbered(process / "task"):
            comm, fields = _stat(thread / "stat")
            if len(fields) > POLICY and fields[STATE] == "R" and int(fields[POLICY]) in POLICIES:
                policy = POLICIES[int(fields[POLICY])]
                yield RealtimeThread(comm, int(thread.name), int(fields[PROCESSOR]), policy)


def _numbered(folder: Path) -> list[Path]:
    """Return the entries of *folder* that numbers name, none if its process has ended."""
    try:
        return [entry for entry in folder.iterdir() if entry.name.isdecimal()]
    except OSError:
        return []


def _from_dump(task: str, dump: str) -> tuple[int | None, str]:
    """Find the CPU whose block lists *task* as runnable, and its current task of a higher class."""
    cpu, hog = None, ""
    for line in kernel_lines(dump):
        heading, current = CPU_HEADING.match(line), CURRENT_TASK.match(line)
        if heading:
            cpu, hog = int(heading[1]), ""
        elif current:
            class_name = ABOVE_SCHED_EXT.get(current["class"])
            hog = f"{current['task']} ({class_name})" if class_name else ""
        elif re.match(rf"\s*\*?[A-Z] {re.escape(task)}(?:\s|$)", line):
            return cpu, hog
    return None, ""


def _cpu_of(task: str, proc: Path) -> int | None:
    """Return the CPU that ``name[tid]`` ran on last, or None if that thread is gone."""
    name, _, tid = task.rpartition("[")
    comm, fields = _stat(proc / tid.rstrip("]") / "stat")
    return int(fields[PROCESSOR]) if comm == name and len(fields) > PROCESSOR else None


def _stat(path: Path) -> tuple[str, list[str]]:
    head, _, tail = (read_line(path, limit=4096) or "").rpartition(")")
    return head.partition("(")[2], tail.split()
