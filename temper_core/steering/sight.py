"""Facts about a thread that only user space can read: its process's title and its behaviour."""

import os
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path

from attrs import define

from temper_core.records.threads import ThreadBehaviour
from temper_core.steering.patient_reading import PatientReader

NS_PER_S = 1_000_000_000
US_PER_S = 1_000_000
WINDOW_S = 2.0
"""The shortest window a behaviour is measured over."""
TITLE_AGE_S = 5.0
"""The period of reading a process's title. A young one is read again when its age has doubled."""
LONGEST_TEXT = 4_096


@define
class _Title:
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
    """Reads titles and measures behaviour, and caches both while they are valid."""

    def __init__(
        self,
        proc_root: Path | str = Path("/proc"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = str(proc_root)
        self._clock = clock
        self._titles: dict[int, _Title] = {}
        self._names: dict[int, _Title] = {}
        self._measured: dict[int, _Measured] = {}
        self._command_lines = PatientReader(lambda tgid: self._text(tgid, "cmdline"))

    def close(self) -> None:
        """End the thread that reads titles."""
        self._command_lines.close()

    def title(self, tgid: int) -> str:
        """Return the command line of a process, words separated by blanks, empty if it has ended.

        While the process's memory is locked this is the last known one.
        """
        text = self._read(self._titles, tgid, self._command_lines.read)
        return text.replace("\0", " ").strip()

    def process(self, tgid: int) -> str:
        """Return a process's name, empty if it has ended."""
        return self._read(self._names, tgid, self._name).rstrip("\n")

    def is_root(self, tgid: int) -> bool:
        """Whether a process's effective user is root (proc(5), ``Uid`` in ``status``)."""
        for line in self._text(tgid, "status").splitlines():
            if line.startswith("Uid:"):
                return line.split()[2] == "0"
        return False

    def behaviour(self, tgid: int, tid: int, start_ns: int) -> ThreadBehaviour | None:
        """Return a thread's behaviour in its last whole window, None before the first."""
        now = self._clock()
        last = self._measured.get(tid)
        if last is not None and last.start_ns == start_ns and now - last.at_s < WINDOW_S:
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
        cached = self._titles.get(tgid)
        return self._lasts_s(cached, self._clock()) if cached is not None else 0.0

    def keep(self, alive: AbstractSet[int]) -> None:
        """Forget all processes and threads but those *alive*."""
        for cache in (self._titles, self._names, self._measured):
            for number in cache.keys() - alive:
                del cache[number]

    def _read(self, cache: dict[int, _Title], tgid: int, read: Callable[[int], str | None]) -> str:
        now = self._clock()
        before = cache.get(tgid)
        if before is not None and now < before.read_s + self._lasts_s(before, now):
            return before.text
        text = read(tgid)
        if text is None:
            text = before.text if before is not None else ""
        cache[tgid] = _Title(text, before.born_s if before else now, now)
        return text

    @staticmethod
    def _lasts_s(title: _Title, now: float) -> float:
        return min(TITLE_AGE_S, now - title.born_s)

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
