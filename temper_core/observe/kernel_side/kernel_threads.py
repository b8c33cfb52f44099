"""The tiers ``bpf`` and ``bpf-iter``: one pass in the kernel, which keeps every thread's counters.

Only the busiest threads are copied to user space. The same pass sums up the others by cgroup.
"""

import mmap
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import ClassVar, Self

from attrs import astuple

from temper_core.bpf.package import load_object
from temper_core.bpf.skeleton import Skeleton
from temper_core.errors import BpfError
from temper_core.observe.kernel_side.cgroup_paths import CgroupPaths
from temper_core.observe.kernel_side.iterator import TaskIterator
from temper_core.observe.kernel_side.layout import (
    CONTROL_BYTES,
    GROUP,
    MOST_GROUPS,
    MOST_OF_OWNER,
    MOST_PATHS,
    NO_CGROUP,
    PATH,
    ROW,
    Control,
    LookCounts,
    LookRequest,
    rows_for,
)
from temper_core.observe.thread_rows import ThreadRow, ThreadRows, ThreadSums

_PROGRAM = "look"
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC
"""The inode of the host's pid namespace: PROC_PID_INIT_INO of linux/proc_ns.h."""
_MOST_NAMES = 4_096
_MORE_BASELINES = 32


class _Names(dict[bytes, str]):
    """A cache of decoded thread names. Few names make up most threads."""

    def __missing__(self, comm: bytes) -> str:
        if len(self) >= _MOST_NAMES:
            self.clear()
        text = self[comm] = comm.split(b"\0", 1)[0].decode("utf-8", "replace")
        return text


class KernelThreads(ABC):
    """The common part of both tiers. Make one with ``open`` and close it."""

    tier: str
    object_name: ClassVar[str]
    most_groups: ClassVar[int] = MOST_GROUPS
    most_of_owner: ClassVar[int] = MOST_OF_OWNER

    def __init__(
        self, skeleton: Skeleton, detail_threads: int, unified_root: str, least_ratio: float
    ) -> None:
        self._detail = detail_threads
        self._least_ratio = least_ratio
        self._looked_ns = time.monotonic_ns()
        self._kernel_ns = 0
        self._paths = CgroupPaths(unified_root)
        self._names = _Names()
        self._defects: tuple[str, ...] = ()
        self._skeleton = skeleton
        with ExitStack() as opened:
            opened.enter_context(skeleton)
            self._control = Control(self._memory(opened, "control", CONTROL_BYTES))
            rows = ROW.size * rows_for(detail_threads)
            self._rows = self._memory(opened, "rows", rows)
            self._groups = self._memory(opened, "groups", GROUP.size * MOST_GROUPS)
            self._path_rows = self._memory(opened, "paths", PATH.size * MOST_PATHS)
            self._held = opened.pop_all()

    @classmethod
    def open(
        cls,
        detail_threads: int = 256,
        unified_root: str = "/sys/fs/cgroup",
        least_ratio: float = 0.0,
    ) -> Self:
        """Load the object, in 20 to 60 ms, and try it once. Raises ``BpfError``.

        About *detail_threads* get rows of their own. *unified_root* is cgroup v2's mount point.
        """
        room = {"rows": rows_for(detail_threads)}
        skeleton = load_object(__package__, cls.object_name, max_entries=room)
        reader = cls(skeleton, detail_threads, unified_root, least_ratio)
        with ExitStack() as opened:
            opened.callback(reader.close)
            reader._prepare()
            reader._look(is_baseline=True)
            opened.pop_all()
        return reader

    def snapshot(self, since: int) -> ThreadRows:
        """Return the threads that ran since the last snapshot. 0 for *since* makes a baseline.

        Raises OSError if the kernel refuses the pass.
        """
        clock_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        try:
            counted = self._look(is_baseline=since == 0)
        except BpfError as error:
            raise OSError(error.errno, str(error), f"tier {self.tier}") from error
        return self._summary(counted, clock_ns)

    def refresh_cgroups(self) -> None:  # noqa: B027 - the reader through /proc needs it
        """Do nothing, since every look reads the threads' cgroups and reports new paths.

        Reporting all paths again would displace new ones, and these would have to be searched for
        in the whole tree.
        """

    def close(self) -> None:
        """Unload the object with all its counters. A second call does nothing."""
        self._held.close()

    def _prepare(self) -> None:  # noqa: B027 - only one tier has something to prepare
        """Prepare for ``_run``. Raises ``BpfError``."""

    @abstractmethod
    def _run(self) -> None:
        """Run the program once over all threads. Raises ``BpfError``."""

    def _memory(self, opened: ExitStack, name: str, size: int) -> mmap.mmap:
        return opened.enter_context(self._skeleton.memory(name, size))

    def _look(self, *, is_baseline: bool) -> LookCounts:
        """Pass over all threads. A baseline is repeated until all cgroups have names."""
        self._kernel_ns = 0
        counted = self._pass(is_baseline=is_baseline)
        for _ in range(_MORE_BASELINES):
            if not (is_baseline and counted.unnamed):
                break
            counted = self._pass(is_baseline=True)
        return counted

    def _pass(self, *, is_baseline: bool) -> LookCounts:
        before_ns, self._looked_ns = self._looked_ns, time.monotonic_ns()
        least_ns = int((self._looked_ns - before_ns) * self._least_ratio)
        self._control.ask(
            LookRequest(
                is_baseline,
                self._paths.names,
                self._detail,
                self.most_groups,
                self.most_of_owner,
                least_ns,
            )
        )
        began_ns = time.thread_time_ns()
        self._run()
        self._kernel_ns += time.thread_time_ns() - began_ns
        counted = self._control.counted
        self._paths.learn(PATH.iter_unpack(self._path_rows[: PATH.size * counted.paths]))
        return counted

    def _summary(self, counted: LookCounts, clock_ns: int) -> ThreadRows:
        groups = list(GROUP.iter_unpack(self._groups[: GROUP.size * counted.groups]))
        paths = self._paths.of([group[0] for group in groups])
        living, rest = _sums(groups, paths)
        return ThreadRows(
            clock_ns,
            self._thread_rows(counted.rows, paths),
            counted.seen,
            living,
            (*self._defects, *self._shortfalls(counted, groups, paths)),
            rest,
            self._control.least_ns,
            self._kernel_ns,
        )

    def _shortfalls(
        self, counted: LookCounts, groups: Sequence[tuple[int, ...]], paths: Sequence[str]
    ) -> Iterator[str]:
        """Yield the defects of a look."""
        if counted.unkept:
            yield f"threads: {counted.unkept} have no counters, since the kernel had no memory left"
        crowded = [living for cgroup, living, *_ in groups if cgroup == NO_CGROUP]
        if crowded:
            yield (
                f"threads: {sum(crowded)} are counted outside of pods, since more than "
                f"{self.most_groups - 1} cgroups have threads"
            )
        if nameless := paths.count("") - len(crowded):
            yield f"threads: {nameless} cgroups have no name"

    def _thread_rows(self, count: int, paths: Sequence[str]) -> tuple[ThreadRow, ...]:
        names, row = self._names, ThreadRow._make  # half the cost of naming the fields
        # fmt: off
        return tuple([
            row((
                tid, tgid, names[comm], names[process], start, cpu, run, delay, bool(is_kthread),
                uid, paths[group], runs, voluntary, involuntary, migrations,
                policy, nice, priority, allowed, waiting,
            ))
            for (
                tid, tgid, comm, process, start, cpu, uid, run, delay,
                runs, voluntary, involuntary, migrations, waiting,
                policy, nice, priority, allowed, group, is_kthread, _rank,
            ) in ROW.iter_unpack(self._rows[: ROW.size * count])
        ])
        # fmt: on


class BpfThreads(KernelThreads):
    """The tier ``bpf``: one call walks all threads of the host, in every pid namespace."""

    tier = "bpf"
    object_name = "look"

    def _run(self) -> None:
        self._skeleton.run(_PROGRAM)


class IterThreads(KernelThreads):
    """The tier ``bpf-iter``, for kernels before 6.7: all threads of the agent's pid namespace."""

    tier = "bpf-iter"
    object_name = "look_iter"

    def _prepare(self) -> None:
        self._iterator = self._held.enter_context(TaskIterator(self._skeleton.programs[_PROGRAM]))
        with suppress(OSError):
            if Path("/proc/self/ns/pid").stat().st_ino != _INITIAL_PID_NAMESPACE:
                self._defects = ("threads: only this pid namespace is visible; set hostPID",)

    def _run(self) -> None:
        self._iterator.run()


def _sums(
    groups: Sequence[tuple[int, ...]], paths: Sequence[str]
) -> tuple[dict[str, int], dict[str, ThreadSums]]:
    """Return the number of living threads, and the use of threads without a row, by cgroup."""
    living: dict[str, int] = {}
    rest: dict[str, ThreadSums] = {}
    for (_, alive, threads, *used), path in zip(groups, paths, strict=True):
        living[path] = living.get(path, 0) + alive
        if threads:
            sums = ThreadSums(threads, *used)
            rest[path] = _added(rest[path], sums) if path in rest else sums
    return living, rest


def _added(one: ThreadSums, other: ThreadSums) -> ThreadSums:
    """Add up the use of two cgroups of one path: a removed one and its successor."""
    pairs = zip(astuple(one), astuple(other), strict=True)
    return ThreadSums(*(first + second for first, second in pairs))
