"""What is remembered of processes and their threads between two ticks."""

import os

from attrs import define, field

from temper_core.observe.descriptors import DescriptorBudget, read_once
from temper_core.observe.process_text import SchedStat, StatLine, parse_cgroup

FRESH_TICKS = 2
"""Ticks in which a new process' cgroup is read again: runtimes move it after the fork."""


@define(eq=False)
class Task:
    """A thread as last read. ``raw`` is its counter file, equal as long as it did not run.

    ``stat`` is a kept descriptor too, for a thread that has run between two ticks; -1 for none.
    """

    tid: int
    descriptor: int
    raw: bytes
    counters: SchedStat
    line: StatLine
    stat: int = -1


@define(eq=False)
class Process:
    """A process: where it lives, whose it is, and its threads by tid."""

    pid: int
    home: str
    folder: str
    name: str = ""
    cgroup: str = ""
    uid: int = 0
    is_kthread: bool = False
    fresh: int = FRESH_TICKS
    tasks: dict[int, Task] = field(factory=dict)

    def learn(self) -> None:
        """Read anew whose the process is and in which cgroup. Raise OSError if it is gone."""
        self.cgroup = parse_cgroup(read_once(f"{self.home}/cgroup", 16384)) or self.cgroup
        self.uid = os.stat(self.home).st_uid  # noqa: PTH116 - hot path

    def may_have_others(self) -> bool:
        """Whether its threads may be others than those in ``tasks``; OSError if it is gone.

        The kernel counts the threads into the link count of ``task`` (``proc_task_getattr``).
        """
        if self.is_kthread:
            return False
        seen = os.stat(self.folder)  # noqa: PTH116 - hot path
        self.uid = seen.st_uid
        return seen.st_nlink - 2 != len(self.tasks)

    def forget(self, tid: int, budget: DescriptorBudget) -> None:
        """Drop a thread that has ended."""
        task = self.tasks.pop(tid, None)
        if task is not None:
            budget.close(task.descriptor)
            budget.close(task.stat)
