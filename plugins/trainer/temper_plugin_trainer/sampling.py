"""Samples processes periodically and accumulates the counters of their threads.

A sample reads two files per thread: ``schedstat`` (fs/proc/base.c, ``proc_pid_schedstat``: time on
a CPU, time waiting for one, number of runs) and ``comm``. With ``sleeps`` it also reads ``status``
(switches by reason) and ``wchan`` (the kernel function that the thread sleeps in), as
proc_pid_status(5) and proc_pid_wchan(5) describe. Of a process it reads ``stat``, ``cmdline``,
``exe`` and its parent's name.

What is kept has bounds, since a process may begin threads and change names without end. Of a
thread or process the first ``MOST_NAMES`` names count, and of a process the first ``MOST_TITLES``
titles and ``MOST_ORIGINS`` origins. Later ones are not known. Of ended threads
``MOST_ENDED_THREADS`` are kept, and ``MOST_ENDED_PROCESSES`` ended processes. The CPU time of
others is in ``ThreadSampler.unseen_cpus``.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from attrs import define, field, frozen

from temper_core import MachineError, PatientReader
from temper_plugin_trainer.proc_files import (
    TICKS_PER_S,
    ProcessStat,
    parsed_stat,
    read_once,
)
from temper_plugin_trainer.process_trees import ProcessSource
from temper_plugin_trainer.titles import clean_title

NS_PER_S = 1_000_000_000
LONGEST_COMMAND_LINE = 4_096
LONGEST_FUNCTION = 64
MOST_NAMES, MOST_TITLES, MOST_ORIGINS = 64, 8, 8
MOST_ENDED_THREADS, MOST_ENDED_PROCESSES = 50_000, 10_000
MOST_NAMES_OF_ENDED = 8
"""Names that are kept of an ended thread, the most frequent ones."""
_STAT_SIZE = 1_024
_STATUS_SIZE = 4_096
_VOLUNTARY, _INVOLUNTARY = b"\nvoluntary_ctxt_switches:", b"\nnonvoluntary_ctxt_switches:"

_Text = TypeVar("_Text", bound=Hashable)


class ThreadCounters(NamedTuple):
    """A thread's counters since it began: ns on a CPU, ns waiting for one, number of runs.

    ``sleeps`` are its voluntary switches and ``preemptions`` the others, both 0 if not read.
    """

    run_ns: int = 0
    delay_ns: int = 0
    runs: int = 0
    sleeps: int = 0
    preemptions: int = 0

    def since(self, earlier: "ThreadCounters") -> "ThreadCounters":
        """Return the increase since *earlier*."""
        return ThreadCounters(*(now - then for now, then in zip(self, earlier, strict=True)))


class SampledInterval(NamedTuple):
    """All threads between two samples: its length, the increase of their counters, their number."""

    seconds: float
    used: ThreadCounters
    threads: int


class Origin(NamedTuple):
    """The file name of a process's executable, its parent's name, and whether it is a mere fork.

    ``is_child`` if the process has executed no program since its fork (PF_FORKNOEXEC).
    """

    exe: str = ""
    parent: str = ""
    is_child: bool = False


@frozen
class SeenThread:
    """One sampled thread, which lived for ``lived_s`` from the age of ``age_s`` on, -1 if unknown.

    ``names`` are its other names. ``peak`` is its largest share of a CPU between two samples, and
    ``sleeps_in`` the number of samples in which it slept, by kernel function.
    """

    comm: str
    names: tuple[str, ...]
    process: str
    title: str
    leader: bool
    container: str
    used: ThreadCounters
    lived_s: float
    age_s: float = -1.0
    origin: Origin = Origin()
    pid: int = 0
    tid: int = 0
    peak: float = 0.0
    sleeps_in: Mapping[str, int] = field(factory=dict)


@define(eq=False)
class _Thread:
    tid: int
    base: ThreadCounters
    since_s: float
    age_s: float
    last: ThreadCounters
    last_s: float
    names: Counter[str] = field(factory=Counter)
    peak: float = 0.0
    sleeps_in: Counter[str] = field(factory=Counter)

    def end(self) -> None:
        """Forget what is not needed of an ended thread."""
        self.names = _most_common(self.names, MOST_NAMES_OF_ENDED)

    def seen(self, process: "_Process", *, leader: bool) -> SeenThread:
        comm, *others = [name for name, _ in self.names.most_common()]
        return SeenThread(
            comm,
            tuple(others),
            process.name,
            process.title,
            leader,
            process.container,
            self.last.since(self.base),
            self.last_s - self.since_s,
            self.age_s,
            process.origin,
            process.pid,
            self.tid,
            self.peak,
            dict(self.sleeps_in),
        )


@define(eq=False)
class _Process:
    """One process, kept when it has ended. ``used_s`` includes the CPU time of reaped children."""

    pid: int
    container: str
    start_s: float
    base_s: float
    used_s: float = 0.0
    threads: dict[int, _Thread] = field(factory=dict)
    ended: list[_Thread] = field(factory=list)
    names: Counter[str] = field(factory=Counter)
    titles: Counter[str] = field(factory=Counter)
    origins: Counter[Origin] = field(factory=Counter)

    @property
    def origin(self) -> Origin:
        return self.origins.most_common(1)[0][0] if self.origins else Origin()

    @property
    def name(self) -> str:
        return self.names.most_common(1)[0][0] if self.names else ""

    @property
    def title(self) -> str:
        return self.titles.most_common(1)[0][0] if self.titles else ""

    def end(self, most_threads: int) -> None:
        """Forget what is not needed of an ended process, and all but its first threads."""
        self.threads = dict(islice(self.threads.items(), most_threads))
        for thread in self.threads.values():
            thread.end()
        self.names = _most_common(self.names, 1)
        self.titles = _most_common(self.titles, 1)
        self.origins = _most_common(self.origins, 1)

    def seen(self) -> Iterator[SeenThread]:
        for tid, thread in self.threads.items():
            yield thread.seen(self, leader=tid == self.pid)
        for thread in self.ended:
            yield thread.seen(self, leader=False)


class ThreadSampler:
    """Samples the threads of the processes of *source*. ``look`` may raise MachineError.

    The first sample is the baseline. *host* is the host name that is hidden in titles. With
    *sleeps*, switches by reason and wait channels are read too.
    """

    def __init__(
        self,
        source: ProcessSource,
        *,
        host: str = "",
        proc_root: Path | str = Path("/proc"),
        clock: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        sleeps: bool = False,
    ) -> None:
        self._source = source
        self._host = host
        self._root = str(proc_root)
        self._clock = clock
        self._reads_sleeps = sleeps
        self._increase = ThreadCounters()
        self.intervals: list[SampledInterval] = []
        """The activity of all threads between each two samples, without threads that ended."""
        self._began_s: float | None = None
        self._ends_s = 0.0
        self._alive: dict[int, _Process] = {}
        self._ended: list[_Process] = []
        self._ended_threads = 0
        self._ended_base_s = 0.0
        self._command_lines = PatientReader(self._command_line)

    def close(self) -> None:
        """End the thread that reads command lines."""
        self._command_lines.close()

    @property
    def seconds(self) -> float:
        """Seconds between the first and the last sample."""
        return self._ends_s - (self._began_s or 0.0)

    @property
    def is_over(self) -> bool:
        """Whether all processes have ended."""
        return not self._alive

    @property
    def unseen_cpus(self) -> float:
        """CPUs used by threads that lived between two samples, or have ended and are not kept.

        As exact as clock ticks.
        """
        processes = [*self._alive.values(), *self._ended]
        used_s = sum(process.used_s for process in self._alive.values())
        used_s -= self._ended_base_s
        seen_s = sum(row.used.run_ns for process in processes for row in process.seen()) / NS_PER_S
        return max(0.0, used_s - seen_s) / self.seconds if self.seconds else 0.0

    def look(self) -> None:
        """Sample all threads once."""
        now = self._clock()
        if self._began_s is None:
            self._require_counters()
            self._began_s = now
        self._increase = ThreadCounters()
        processes = self._source.processes()
        for pid in [pid for pid in self._alive if pid not in processes]:
            self._end_process(pid)
        for pid, container in processes.items():
            process = self._met(pid, container)
            if process is not None:
                self._look_at(process, now)
        if self._ends_s:
            threads = sum(len(process.threads) for process in self._alive.values())
            seconds = now - self._ends_s
            self.intervals.append(SampledInterval(seconds, self._increase, threads))
        self._ends_s = now

    def seen(self) -> Iterator[SeenThread]:
        """Yield every thread of at least two samples, or whose start is known."""
        for process in (*self._alive.values(), *self._ended):
            yield from (thread for thread in process.seen() if thread.lived_s > 0)

    def _require_counters(self) -> None:
        try:
            read_once(f"{self._root}/self/schedstat", _STAT_SIZE)
        except OSError as error:
            why = "the kernel keeps no such counters (CONFIG_SCHED_INFO)"
            raise MachineError(f"{self._root}/self/schedstat: {why}") from error

    def _met(self, pid: int, container: str) -> _Process | None:
        """Return the process of that id, None if it is gone. A reused id is another process."""
        stat = self._stat(f"{self._root}/{pid}")
        known = self._alive.get(pid)
        if known is not None and (stat is None or stat.start_s != known.start_s):
            self._end_process(pid)
            known = None
        if stat is None:
            return None
        if known is None:
            base_s = 0.0 if self._is_young(stat.start_s) else stat.used_s
            known = self._alive[pid] = _Process(pid, container, stat.start_s, base_s)
        known.used_s = stat.used_s - known.base_s
        _count_in(known.names, stat.comm, MOST_NAMES)
        if title := self._title(pid):
            _count_in(known.titles, title, MOST_TITLES)
        _count_in(known.origins, self._origin(pid, stat), MOST_ORIGINS)
        return known

    def _look_at(self, process: _Process, now: float) -> None:
        folder = f"{self._root}/{process.pid}/task"
        alive = set()
        for tid in _numbers(folder):
            try:
                self._note(process, tid, f"{folder}/{tid}", now)
            except OSError:  # it has just ended
                continue
            alive.add(tid)
        for tid in process.threads.keys() - alive - {process.pid}:
            self._end_thread(process, tid)

    def _end_process(self, pid: int) -> None:
        process = self._alive.pop(pid)
        self._ended_base_s += process.base_s
        if len(self._ended) >= MOST_ENDED_PROCESSES:
            self._ended_threads -= len(process.ended)
            return
        process.end(MOST_ENDED_THREADS - self._ended_threads)
        self._ended_threads += len(process.threads)
        self._ended.append(process)

    def _end_thread(self, process: _Process, tid: int) -> None:
        thread = process.threads.pop(tid)
        if self._ended_threads < MOST_ENDED_THREADS:
            self._ended_threads += 1
            thread.end()
            process.ended.append(thread)

    def _note(self, process: _Process, tid: int, home: str, now: float) -> None:
        counters = self._counters(home)
        comm = read_once(f"{home}/comm", _STAT_SIZE).decode("utf-8", "replace").removesuffix("\n")
        known = process.threads.get(tid)
        if known is not None and counters.run_ns < known.last.run_ns:  # the id is in use again
            self._end_thread(process, tid)
            known = None
        if known is None:
            known = process.threads[tid] = self._begun(tid, home, counters, now)
        self._note_increase(known, counters, now)
        known.last, known.last_s = counters, now
        _count_in(known.names, comm, MOST_NAMES)
        if self._reads_sleeps and (function := _function_in(home)):
            _count_in(known.sleeps_in, function, MOST_NAMES)

    def _note_increase(self, thread: _Thread, counters: ThreadCounters, now: float) -> None:
        """Add what *thread* did since its last sample, or since its start if it is new."""
        is_new = thread.last is counters
        increase = counters.since(thread.base if is_new else thread.last)
        since_s = thread.since_s if is_new else thread.last_s
        if now > since_s:
            thread.peak = max(thread.peak, increase.run_ns / NS_PER_S / (now - since_s))
        sums = (mine + theirs for mine, theirs in zip(self._increase, increase, strict=True))
        self._increase = ThreadCounters(*sums)

    def _counters(self, home: str) -> ThreadCounters:
        words = read_once(f"{home}/schedstat", _STAT_SIZE).split()
        counters = ThreadCounters(*map(int, words[:3]))
        if not self._reads_sleeps:
            return counters
        status = read_once(f"{home}/status", _STATUS_SIZE)
        sleeps, preemptions = _count(status, _VOLUNTARY), _count(status, _INVOLUNTARY)
        return counters._replace(sleeps=sleeps, preemptions=preemptions)

    def _begun(self, tid: int, home: str, counters: ThreadCounters, now: float) -> _Thread:
        stat = self._stat(home)
        if stat is not None and self._is_young(stat.start_s):
            since_s = max(stat.start_s, self._began_s or 0.0)
            return _Thread(tid, ThreadCounters(), since_s, 0.0, counters, now)
        age_s = max(0.0, now - stat.start_s) if stat is not None else -1.0
        return _Thread(tid, counters, now, age_s, counters, now)

    def _is_young(self, start_s: float) -> bool:
        """Whether it has started since the first sample, and not only become visible."""
        # The kernel reports the start in whole ticks, rounded down.
        is_first_look = self._ends_s == 0
        began_s = self._began_s or 0.0
        return not is_first_look and start_s + 1 / TICKS_PER_S > began_s

    def _title(self, pid: int) -> str:
        """Return the cleaned command line. Empty if it cannot be read, or if its read blocks."""
        text = self._command_lines.read(pid) or ""
        return clean_title(text.replace("\0", " ").strip(), self._host)

    def _command_line(self, pid: int) -> str:
        try:
            raw = read_once(f"{self._root}/{pid}/cmdline", LONGEST_COMMAND_LINE)
        except OSError:
            return ""
        return raw.decode("utf-8", "replace")

    def _origin(self, pid: int, stat: ProcessStat) -> Origin:
        try:
            comm = read_once(f"{self._root}/{stat.parent}/comm", _STAT_SIZE)
        except OSError:  # it has no parent in this namespace, or the parent has just ended
            comm = b""
        name = comm.decode("utf-8", "replace").removesuffix("\n")
        return Origin(self._executable(pid), name, stat.is_child)

    def _executable(self, pid: int) -> str:
        try:
            link = os.readlink(f"{self._root}/{pid}/exe")  # noqa: PTH115 - of every process, twice a second
        except OSError:
            return ""
        path = os.fsencode(link).decode("utf-8", "replace").removesuffix(" (deleted)")
        return path.rpartition("/")[2]

    def _stat(self, home: str) -> ProcessStat | None:
        """Read a ``stat``. The result is None for kernel threads and for ended ones and zombies."""
        try:
            return parsed_stat(read_once(f"{home}/stat", _STAT_SIZE))
        except OSError:
            return None


def _count_in(texts: Counter[_Text], text: _Text, most: int) -> None:
    """Count *text*, unless it is new and *texts* has *most* others."""
    if text in texts or len(texts) < most:
        texts[text] += 1


def _most_common(texts: Counter[_Text], most: int) -> Counter[_Text]:
    return Counter(dict(texts.most_common(most)))


def _count(status: bytes, key: bytes) -> int:
    """Return the number behind *key* in a ``status``, 0 if it is missing."""
    words = status.partition(key)[2].split(maxsplit=1)
    return int(words[0]) if words else 0


def _function_in(home: str) -> str:
    """Return the kernel function that a thread sleeps in. Empty if it runs, or if none is shown."""
    try:
        name = read_once(f"{home}/wchan", _STAT_SIZE).decode("ascii", "replace")
    except OSError:  # a kernel without CONFIG_KALLSYMS, or without the right to read it
        return ""
    return "" if name == "0" else name[:LONGEST_FUNCTION]


def _numbers(folder: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdigit()]  # noqa: PTH208 - thousands of names, twice a second
    except OSError:
        return []
