"""The state of processes and their threads that is kept between two ticks."""

import os

from attrs import define, field

from temper_core.observe.descriptors import DescriptorBudget, read_once
from temper_core.observe.process_text import SchedStat, StatLine, cgroup_namespace, parse_cgroup

FRESH_TICKS = 2
"""Ticks in which a new process' cgroup is read again, since runtimes move it after the fork."""


@define(eq=False)
class Task:
    """A thread as last read. ``raw`` is its counter file, unchanged as long as it does not run.

    ``stat`` is a second kept descriptor, for a thread that ran between two ticks, or -1.
    """

    tid: int
    descriptor: int
    raw: bytes
    counters: SchedStat
    line: StatLine
    stat: int = -1


@define(eq=False)
class Process:
    """A process: its cgroup, its user, and its threads by tid."""

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
        """Read the process' user and cgroup again. Raise OSError if it has ended."""
        self.cgroup = (
            parse_cgroup(read_once(f"{self.home}/cgroup", 16384), cgroup_namespace()) or self.cgroup
        )
        self.uid = os.stat(self.home).st_uid  # noqa: PTH116 - hot path

    def may_have_others(self) -> bool:
        """Whether its threads may differ from ``tasks``. Raise OSError if it has ended.

        The kernel counts the threads into the link count of ``task`` (``proc_task_getattr``).
        """
        if self.is_kthread:
            return False
        status = os.stat(self.folder)  # noqa: PTH116 - hot path
        self.uid = status.st_uid
        return status.st_nlink - 2 != len(self.tasks)

    def forget(self, tid: int, budget: DescriptorBudget) -> None:
        """Drop a thread that has ended."""
        task = self.tasks.pop(tid, None)
        if task is not None:
            budget.close(task.descriptor)
            budget.close(task.stat)
