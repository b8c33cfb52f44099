"""Facts about a thread that only user space can read: of its process, and its behaviour."""

import errno
import os
import re
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path

from attrs import define

from temper_core.kernel_text import kernel_lines, kernel_words
from temper_core.patient_reading import PatientReader, cgroup_owner
from temper_core.profiles.matching import LONGEST_TITLE
from temper_core.records.steering import BEHAVIOUR_WINDOW_S
from temper_core.records.threads import ThreadBehaviour

NS_PER_S = 1_000_000_000
US_PER_S = 1_000_000
TITLE_AGE_S = 5.0
"""The period of reading a process's texts. A young one is read again when its age has doubled."""
LONGEST_TEXT = 4_096
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
DELETED = " (deleted)"
"""The kernel's suffix to the path of a removed executable (proc_pid_exe(5))."""
_PARENT, _FLAGS = 1, 6
"""The parent's id and the flags in ``stat``, counted after the name (proc_pid_stat(5))."""
PF_FORKNOEXEC = 0x40
"""The flag of a task that was forked and has not executed a program (include/linux/sched.h)."""


@define
class _Text:
    """A text of a process: when the process was first read, and when this text was read."""

    text: str
    born_s: float
    read_s: float


@define
class _Measured:
    """A thread's counters at the start of its window, and its behaviour in the window before."""

    start_ns: int
    at_s: float
    run_ns: int
    runs: int
    seen: ThreadBehaviour | None = None


class ThreadProbe:
    """Reads facts of processes and measures behaviour, and caches both while they are valid.

    A process's texts are read once for all of its threads, and again every ``TITLE_AGE_S`` seconds.
    """

    def __init__(
        self,
        proc_root: Path | str = Path("/proc"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = str(proc_root)
        self._clock = clock
        self._titles: dict[int, _Text] = {}
        self._names: dict[int, _Text] = {}
        self._executables: dict[int, _Text] = {}
        self._stats: dict[int, _Text] = {}
        self._denied: set[int] = set()
        self._measured: dict[int, _Measured] = {}
        self._unread: set[int] = set()
        self._command_lines = PatientReader(
            lambda tgid: self._text(tgid, "cmdline"), owner_of=cgroup_owner(proc_root)
        )

    def close(self) -> None:
        """End the thread that reads titles."""
        self._command_lines.close()

    def title(self, tgid: int) -> str:
        """Return the command line of a process, words separated by blanks, empty if it has ended.

        It is cut to what patterns see. A character beyond U+FFFF becomes U+FFFD: one of them would
        double the memory of the others, of which any pod may have thousands of processes.
        While the process's memory is locked this is the last known one.
        """
        return self._read(self._titles, tgid, self._command_line)

    def process(self, tgid: int) -> str:
        """Return a process's name, empty if it has ended."""
        return self._read(self._names, tgid, self._name).rstrip("\n")

    def exe(self, tgid: int) -> str:
        """Return the file name of a process's executable, empty if it has ended or may not be read.

        A file that was removed since, as by an upgrade, keeps its name.
        """
        return self._executable(tgid).rpartition("/")[2]

    @property
    def denied(self) -> int:
        """The number of processes whose executable may not be read (ptrace(2), access modes)."""
        return len(self._denied)

    @property
    def unread(self) -> int:
        """The number of processes whose command line could not be read when it was last due."""
        return len(self._unread)

    def parent(self, tgid: int) -> str:
        """Return the name of a process's parent, empty if either has ended."""
        parent, _ = self._parent_and_flags(tgid)
        return self.process(parent) if parent else ""

    def is_child(self, tgid: int) -> bool | None:
        """Whether a process was forked and has executed no program since. None if it has ended."""
        parent, flags = self._parent_and_flags(tgid)
        return bool(flags & PF_FORKNOEXEC) if parent or flags else None

    def is_root(self, tgid: int) -> bool:
        """Whether a process's effective user is root (proc(5), ``Uid`` in ``status``)."""
        for line in kernel_lines(self._text(tgid, "status")):
            if line.startswith("Uid:"):
                return kernel_words(line)[2] == "0"
        return False

    def behaviour(self, tgid: int, tid: int, start_ns: int) -> ThreadBehaviour | None:
        """Return a thread's behaviour in its last whole window, None before the first."""
        now = self._clock()
        last = self._measured.get(tid)
        if last is not None and last.start_ns == start_ns and now - last.at_s < BEHAVIOUR_WINDOW_S:
            return last.seen
        words = self._text(tgid, f"task/{tid}/schedstat").split()
        run_ns, runs = (int(words[0]), int(words[2])) if len(words) > 2 else (0, 0)  # noqa: PLR2004 - proc(5)
        fresh = _Measured(start_ns, now, run_ns, runs)
        if last is not None and last.start_ns == start_ns:
            fresh.seen = _between(last, fresh)
        self._measured[tid] = fresh
        return fresh.seen

    def title_lasts_s(self, tgid: int) -> float:
        """Return for how many seconds a process's cached title is valid."""
        return self._cached_for_s(self._titles.get(tgid))

    def origin_lasts_s(self, tgid: int) -> float:
        """Return for how many seconds a process's cached executable and parent are valid."""
        known = [self._executables.get(tgid), self._stats.get(tgid)]
        return min((self._cached_for_s(text) for text in known if text is not None), default=0.0)

    def keep(self, alive: AbstractSet[int]) -> None:
        """Forget all processes and threads but those *alive*."""
        self._denied &= alive
        self._unread &= alive
        texts = (self._titles, self._names, self._executables, self._stats)
        for cache in (*texts, self._measured):
            for number in cache.keys() - alive:
                del cache[number]

    def _read(self, cache: dict[int, _Text], tgid: int, read: Callable[[int], str | None]) -> str:
        now = self._clock()
        before = cache.get(tgid)
        if before is not None and now < before.read_s + self._lasts_s(before, now):
            return before.text
        text = read(tgid)
        if text is None:
            text = before.text if before is not None else ""
        cache[tgid] = _Text(text, before.born_s if before else now, now)
        return text

    def _command_line(self, tgid: int) -> str | None:
        text = self._command_lines.read(tgid)
        if text is None:
            self._unread.add(tgid)
        else:
            self._unread.discard(tgid)
            text = _ASTRAL.sub("\ufffd", text.replace("\0", " ").strip()[:LONGEST_TITLE])
        return text

    def _executable(self, tgid: int) -> str:
        return self._read(self._executables, tgid, self._link).removesuffix(DELETED)

    def _parent_and_flags(self, tgid: int) -> tuple[int, int]:
        words = self._read(self._stats, tgid, self._stat_words).split()
        return (int(words[0]), int(words[1])) if words else (0, 0)

    def _link(self, tgid: int) -> str:
        # The kernel prints the path without looking the file up, so this never waits for a disk.
        try:
            link = os.readlink(f"{self._root}/{tgid}/exe")  # noqa: PTH115 - of many processes
        except OSError as error:
            if error.errno == errno.EACCES:
                self._denied.add(tgid)
            return ""
        self._denied.discard(tgid)
        return os.fsencode(link).decode("utf-8", "replace")

    def _stat_words(self, tgid: int) -> str:
        words = self._text(tgid, "stat").rpartition(")")[2].split()
        return f"{words[_PARENT]} {words[_FLAGS]}" if len(words) > _FLAGS else ""

    def _cached_for_s(self, text: _Text | None) -> float:
        return self._lasts_s(text, self._clock()) if text is not None else 0.0

    @staticmethod
    def _lasts_s(text: _Text, now: float) -> float:
        return min(TITLE_AGE_S, now - text.born_s)

    def _name(self, tgid: int) -> str:
        return self._text(tgid, "comm")

    def _text(self, tgid: int, file: str) -> str:
        try:
            descriptor = os.open(f"{self._root}/{tgid}/{file}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            return os.read(descriptor, LONGEST_TEXT).decode("utf-8", "replace")
        except OSError:
            return ""
        finally:
            os.close(descriptor)


def _between(before: _Measured, now: _Measured) -> ThreadBehaviour:
    window_s = now.at_s - before.at_s
    run_ns, runs = max(0, now.run_ns - before.run_ns), max(0, now.runs - before.runs)
    return ThreadBehaviour(
        # The two clocks differ a little, and a bound of 1 means busy throughout.
        cpu_share=min(1.0, run_ns / NS_PER_S / window_s),
        run_us=run_ns / NS_PER_S * US_PER_S / runs if runs else None,
        wakeups_per_s=runs / window_s,
    )
