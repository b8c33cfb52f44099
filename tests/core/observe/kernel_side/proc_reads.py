"""What /proc says of threads, read without any of the code that is tested."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

STAYS = "import os; os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})\n"
"""A process that keeps to one CPU: of one that is moved the kernel may book sleep as a wait, and a
look does not tell all of that."""
WORKERS = f"""{STAYS}
import sys, threading, time
threading.stack_size(131072)
class Worker(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.call, self.done, self.ms = threading.Semaphore(0), threading.Semaphore(0), 0.0
    def run(self):
        while self.call.acquire():
            end = time.thread_time() + self.ms / 1000
            while time.thread_time() < end: pass
            self.done.release()
workers = [Worker() for _ in range(int(sys.argv[1]))]
for worker in workers: worker.start()
print('up', flush=True)
for line in sys.stdin:
    least, step = map(float, line.split())
    for place, worker in enumerate(workers):
        worker.ms = least + place * step
        worker.call.release()
        worker.done.acquire()
    print('worked', flush=True)
"""
"""Threads that work one after the other: LEAST ms the first, and STEP ms more each that follows."""

BUSY = "print('up', flush=True)\nwhile True: pass"
IDLE = "import sys; print('up', flush=True); sys.stdin.read()"
TELLS_MIGRATIONS = Path("/proc/self/sched").exists()


class Counts(NamedTuple):
    """The counters of a thread since its birth; without migrations where /proc has none."""

    run_ns: int
    delay_ns: int
    runs: int
    voluntary: int
    involuntary: int
    migrations: int


def counts_of(pid, tid=None):
    """Read the counters of one thread."""
    task = Path(f"/proc/{pid}/task/{tid or pid}")
    status = (task / "status").read_text()
    switches = [int(count) for count in re.findall(r"_ctxt_switches:\s*(\d+)", status)]
    sched = (task / "sched").read_text() if TELLS_MIGRATIONS else ""
    migrations = re.search(r"nr_migrations\s*:\s*(\d+)", sched)
    run, delay, runs = map(int, (task / "schedstat").read_text().split())
    return Counts(run, delay, runs, *switches, int(migrations[1]) if migrations else 0)


def threads_of(pid):
    """List the threads of a process."""
    return sorted(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir())


def all_counts(pid):
    """Read the counters of all threads of a process, by tid."""
    return {tid: counts_of(pid, tid) for tid in threads_of(pid)}


def used_between(before, after):
    """Return what threads used, by tid, for those of *after* that ran; those new used it all."""
    nothing = Counts(0, 0, 0, 0, 0, 0)
    used = {
        tid: Counts(
            *(now - then for now, then in zip(counts, before.get(tid, nothing), strict=True))
        )
        for tid, counts in after.items()
    }
    return {tid: counts for tid, counts in used.items() if counts.runs or counts.run_ns}


def told(row):
    """Return the counters of a row, or of sums, in the same form."""
    counts = Counts(*(getattr(row, name) for name in Counts._fields))
    return counts if TELLS_MIGRATIONS else counts._replace(migrations=0)


def total(counted):
    """Add up counters, by their name."""
    sums = Counter()
    for counts in counted:
        sums.update({name: getattr(counts, name) for name in Counts._fields})
    return sums


def stat_of(pid, tid=None):
    """Return the fields of a stat line behind the name; the state is the first."""
    line = Path(f"/proc/{pid}/task/{tid or pid}/stat").read_text()
    return line[line.rindex(")") + 2 :].split()
