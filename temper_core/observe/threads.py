"""The ``proc`` tier: every thread of the host, read through kept descriptors of /proc.

A kept descriptor belongs to one thread for good. When the thread has ended, reading it fails with
ESRCH, even if the tid is in use again. Without a kept descriptor, the start time reveals a reused
tid.
"""

import errno
import os
import time
from collections import Counter, deque
from pathlib import Path

from temper_core.observe.descriptors import DescriptorBudget, read_once
from temper_core.observe.process_text import (
    NS_PER_TICK,
    SchedStat,
    StatLine,
    parse_schedstat,
    parse_stat,
)
from temper_core.observe.processes import FRESH_TICKS, Process, Task
from temper_core.observe.thread_rows import ThreadRow, ThreadRows

COUNTERS_SIZE = 80
STAT_SIZE = 1024
LEFT_TO_NEW_THREADS = 0.25
"""Share of the descriptors that is reserved for new threads, not for ``stat`` of running ones."""
LEARN_AT_LEAST = 8
"""Least number of old processes whose cgroup is read again per tick."""
LEARN_ROUND_TICKS = 24
"""Ticks in which the cgroup of every process is read again once."""

_VANISHED = frozenset({errno.ENOENT, errno.ESRCH, errno.ENOTDIR, errno.EINVAL})
_NOTHING = SchedStat(0, 0)


class ProcThreads:
    """Reads the threads that ran since the last look. Any user sees those that /proc shows."""

    tier = "proc"

    def __init__(
        self, proc_root: Path | str = Path("/proc"), budget: DescriptorBudget | None = None
    ) -> None:
        self._root = str(proc_root)
        self._budget = budget or DescriptorBudget()
        self._processes: dict[int, Process] = {}
        self._round: deque[Process] = deque()
        self._learn_all = False
        self._has_schedstat = self._finds_schedstat()
        self._counter_file = "schedstat" if self._has_schedstat else "stat"
        self._counter_size = COUNTERS_SIZE if self._has_schedstat else STAT_SIZE
        self._since = 0
        self._rows: list[ThreadRow] = []
        self._were_hidden = 0
        self._failures: Counter[str] = Counter()

    def snapshot(self, since: int) -> ThreadRows:
        """Return the threads that ran since the last snapshot. *since* is its clock, 0 for none.

        Raises OSError only if the root itself cannot be listed.
        """
        if since == 0:
            self.close()
        clock_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._since, self._rows, self._failures = since, [], Counter()
        self._were_hidden = 0
        alive = _numbers(self._root)
        for pid in self._processes.keys() - alive:
            self._drop(self._processes[pid])
        new = alive - self._processes.keys()
        self._read_processes()
        for pid in new:
            self._add_process(pid)
        return self._summary(clock_ns, hides_others=1 not in alive)

    def refresh_cgroups(self) -> None:
        """Read the cgroup of every process again at the next snapshot, since the pods changed."""
        self._learn_all = True

    def close(self) -> None:
        """Drop all threads and close their descriptors."""
        for process in list(self._processes.values()):
            self._drop(process)
        self._round.clear()

    def _finds_schedstat(self) -> bool:
        # Without CONFIG_SCHED_INFO the kernel has no such file, or one with zeros.
        try:
            return read_once(f"{self._root}/self/schedstat").split() != [b"0", b"0", b"0"]
        except OSError:
            return False

    def _read_processes(self) -> None:
        learn = self._due_for_learning()
        for process in list(self._processes.values()):
            if process.fresh or process in learn:
                self._learn(process)
            self._read_process(process)

    def _add_process(self, pid: int) -> None:
        home = f"{self._root}/{pid}"
        process = Process(pid, home, f"{home}/task")
        self._learn(process)
        self._relist(process)
        if process.tasks:
            self._processes[pid] = process
            self._round.append(process)

    def _drop(self, process: Process) -> None:
        for tid in list(process.tasks):
            process.forget(tid, self._budget)
        self._processes.pop(process.pid, None)

    def _due_for_learning(self) -> set[Process]:
        if self._learn_all:
            self._learn_all = False
            return set(self._processes.values())
        due: set[Process] = set()
        count = max(LEARN_AT_LEAST, len(self._processes) // LEARN_ROUND_TICKS)
        for _ in range(min(count, len(self._round))):
            process = self._round.popleft()
            if self._processes.get(process.pid) is process and not process.is_kthread:
                due.add(process)
                self._round.append(process)
        return due

    def _learn(self, process: Process) -> None:
        process.fresh = 0 if process.is_kthread else max(0, process.fresh - 1)
        try:
            process.learn()
        except OSError as error:
            self._count_failure(error)

    def _read_process(self, process: Process) -> None:
        ended = self._read_known(process)
        for tid in ended:
            process.forget(tid, self._budget)
        if not process.tasks:  # a leader outlives its threads, so the pid is a new process' now
            self._drop(process)
            self._add_process(process.pid)
            return
        try:
            if ended or process.may_have_others():
                self._relist(process)
        except OSError as error:
            self._count_failure(error)

    def _read_known(self, process: Process) -> list[int]:
        """Read the counters of all known threads. Return those that have ended."""
        ended = []
        size = self._counter_size
        for tid, task in process.tasks.items():
            try:
                if task.descriptor >= 0:
                    raw = os.pread(task.descriptor, size, 0)
                else:
                    raw = read_once(f"{process.folder}/{tid}/{self._counter_file}", size)
                if raw != task.raw:
                    self._note_run(process, task, raw)
            except OSError as error:
                ended.append(tid)
                self._count_failure(error)
            except ValueError:
                self._failures["threads with malformed files"] += 1
        return ended

    def _note_run(self, process: Process, task: Task, raw: bytes) -> None:
        line, counters = self._parse(raw, self._read_stat(process, task, raw))
        before, line_before = task.counters, task.line
        task.raw, task.counters, task.line = raw, counters, line
        is_another = line.start_ticks != line_before.start_ticks
        if task.tid == process.pid and (is_another or line.comm != line_before.comm):
            process.name = line.comm
            process.fresh = FRESH_TICKS if is_another else process.fresh
            self._learn(process)
        self._add_row(process, task, _NOTHING if is_another else before)

    def _read_stat(self, process: Process, task: Task, raw: bytes) -> bytes:
        if not self._has_schedstat:
            return raw
        path = f"{process.folder}/{task.tid}/stat"
        if task.stat < 0 <= task.descriptor:
            task.stat = self._budget.open(path, leave=LEFT_TO_NEW_THREADS)
        if task.stat >= 0:
            return os.pread(task.stat, STAT_SIZE, 0)
        return read_once(path, STAT_SIZE)

    def _parse(self, raw: bytes, stat: bytes) -> tuple[StatLine, SchedStat]:
        line = parse_stat(stat)
        if self._has_schedstat:
            return line, parse_schedstat(raw)
        return line, SchedStat(line.cpu_ticks * NS_PER_TICK, 0)

    def _add_row(self, process: Process, task: Task, before: SchedStat) -> None:
        line, now = task.line, task.counters
        # Counters fall when a thread that called exec takes over its leader's tid (de_thread).
        run_ns = max(0, now.run_ns - before.run_ns)
        delay_ns = max(0, now.delay_ns - before.delay_ns)
        self._rows.append(
            ThreadRow(
                task.tid,
                process.pid,
                line.comm,
                process.name,
                line.start_ticks,
                line.cpu,
                run_ns,
                delay_ns,
                line.is_kthread,
                process.uid,
                process.cgroup,
            )
        )

    def _relist(self, process: Process) -> None:
        try:
            tids = _numbers(process.folder)
        except OSError as error:
            self._count_failure(error)
            return
        for tid in process.tasks.keys() - tids:
            process.forget(tid, self._budget)
        for tid in sorted(tids - process.tasks.keys(), key=lambda tid: (tid != process.pid, tid)):
            try:
                self._add_task(process, tid)
            except OSError as error:
                self._count_failure(error)
            except ValueError:
                self._failures["threads with malformed files"] += 1

    def _add_task(self, process: Process, tid: int) -> None:
        path = f"{process.folder}/{tid}/"
        descriptor = self._budget.open(path + self._counter_file)
        try:
            if descriptor >= 0:
                raw = os.pread(descriptor, self._counter_size, 0)
            else:
                raw = read_once(path + self._counter_file, self._counter_size)
            line, counters = self._parse(raw, read_once(path + "stat", STAT_SIZE))
        except (OSError, ValueError):
            self._budget.close(descriptor)
            raise
        task = process.tasks[tid] = Task(tid, descriptor, raw, counters, line)
        if tid == process.pid or not process.name:
            process.name, process.is_kthread = line.comm, line.is_kthread
        # An older thread that appears only now was hidden, and its last window is not known.
        if not self._since:
            return
        if (line.start_ticks + 1) * NS_PER_TICK >= self._since:
            self._add_row(process, task, _NOTHING)
        else:
            self._were_hidden += 1

    def _count_failure(self, error: OSError) -> None:
        if error.errno in _VANISHED:
            return
        if error.errno in (errno.EACCES, errno.EPERM):
            self._failures["processes or threads that may not be read"] += 1
        else:
            self._failures[f"threads that failed with {error.strerror}"] += 1

    def _summary(self, clock_ns: int, *, hides_others: bool) -> ThreadRows:
        living: Counter[str] = Counter()
        for process in self._processes.values():
            living[process.cgroup] += len(process.tasks)
        defects = [f"threads: {count} {what}" for what, count in sorted(self._failures.items())]
        if hides_others:
            defects.append("threads: other users' processes are hidden (hidepid)")
        if not self._has_schedstat:
            defects.append("threads: no schedstat; CPU time in clock ticks, no run delay")
        return ThreadRows(
            clock_ns,
            tuple(self._rows),
            living.total(),
            dict(living),
            tuple(defects),
            sees_all=not (hides_others or self._failures or self._were_hidden),
        )


def _numbers(folder: str) -> set[int]:
    return {int(name) for name in os.listdir(folder) if name.isdigit()}  # noqa: PTH208 - hot path
