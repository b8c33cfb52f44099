"""Starts crews of threads in cgroups: processes whose doings are known, for somebody to observe."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from attrs import frozen

PROGRAM = Path(__file__).with_name("crew.py")


@frozen
class Manner:
    """How a crew is scheduled; what is not given is as usual. ``policy`` as ``os`` numbers it."""

    nice: int = 0
    policy: int = os.SCHED_OTHER
    priority: int = 0
    cpus: frozenset[int] = frozenset()


AS_USUAL = Manner()


@frozen
class Work:
    """What each of a crew's threads does at a word: so many times so many milliseconds of CPU."""

    threads: int
    times: int = 5
    milliseconds: int = 4
    births: int = 0


NEVER_RESTS = 0
"""As the number of ``times``: its threads spin from the first word on."""


class Crew:
    """One process of threads in a cgroup."""

    def __init__(self, cgroup, name, work, manner=AS_USUAL):
        self.work = work
        numbers = (work.threads, work.times, work.milliseconds, work.births)
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-I", PROGRAM, name, *map(str, numbers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        (Path(cgroup) / "cgroup.procs").write_text(str(self.pid))
        self._hear()
        for tid in threads_of(self.pid):
            _apply(manner, tid)

    @property
    def pid(self):
        return self._process.pid

    def begin(self):
        """Let all threads work."""
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def wait(self):
        """Wait until they rest."""
        self._hear()

    def end(self):
        """Kill it and wait until it is gone."""
        self._process.kill()
        self._process.communicate()

    def _hear(self):
        if not self._process.stdout.readline():
            raise RuntimeError(f"the crew {self._process.args} has ended")


def work_all(crews):
    """Let all of these work at once, and wait until they rest."""
    for crew in crews:
        crew.begin()
    for crew in crews:
        crew.wait()


def threads_of(pid):
    return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]


def _apply(manner, tid):
    """Let a thread be scheduled so."""
    with suppress(ProcessLookupError):
        if manner.cpus:
            os.sched_setaffinity(tid, manner.cpus)
        if manner.nice:
            os.setpriority(os.PRIO_PROCESS, tid, manner.nice)
        if manner.policy != os.SCHED_OTHER:
            os.sched_setscheduler(tid, manner.policy, os.sched_param(manner.priority))
