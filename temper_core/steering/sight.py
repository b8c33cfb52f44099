"""What only user space sees of a thread: its process's title, and how it behaves."""

import os
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path

from attrs import define

from temper_core.records.matching import ThreadBehaviour
from temper_core.steering.patient_reading import PatientReader

NS_PER_S = 1_000_000_000
US_PER_S = 1_000_000
WINDOW_S = 2.0
"""A behaviour is measured over so long, at least."""
TITLE_AGE_S = 5.0
"""A process's title is read again so often. That of a young one when its age has doubled."""
LONGEST_TEXT = 4_096


@define
class _Title:
    text: str
    born_s: float
    read_s: float


@define
class _Measured:
    """A thread's counters at the begin of its window, and what was seen in the one before."""

    start_ns: int
    at_s: float
    run_ns: int
    runs: int
    seen: ThreadBehaviour | None = None


class ThreadProbe:
    """Reads titles and measures behaviour, and remembers both for as long as they hold."""

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
        """Let go of the thread that reads titles."""
        self._command_lines.close()

    def title(self, tgid: int) -> str:
        """Return the command line of a process, words apart by blanks. Empty if it has gone.

        The last known one while the process's memory is locked.
        """
        text = self._read(self._titles, tgid, self._command_lines.read)
        return text.replace("\0", " ").strip()

    def process(self, tgid: int) -> str:
        """Return a process's name. Empty if it has gone."""
        return self._read(self._names, tgid, self._name).rstrip("\n")

    def is_root(self, tgid: int) -> bool:
        """Whether a process's effective user is root (proc(5), ``Uid`` in ``status``)."""
        for line in self._text(tgid, "status").splitlines():
            if line.startswith("Uid:"):
                return line.split()[2] == "0"
        return False

    def behaviour(self, tgid: int, tid: int, start_ns: int) -> ThreadBehaviour | None:
        """Return what a thread did in its last whole window. ``None`` until there was one."""
        now = self._clock()
        known = self._measured.get(tid)
        if known is not None and known.start_ns == start_ns and now - known.at_s < WINDOW_S:
            return known.seen
        words = self._text(tgid, f"task/{tid}/schedstat").split()
        run_ns, runs = (int(words[0]), int(words[2])) if len(words) > 2 else (0, 0)  # noqa: PLR2004 - proc(5)
        fresh = _Measured(start_ns, now, run_ns, runs)
        if known is not None and known.start_ns == start_ns:
            fresh.seen = _between(known, fresh)
        self._measured[tid] = fresh
        return fresh.seen

    def title_lasts_s(self, tgid: int) -> float:
        """Return for how long what was read of a process's title is taken to hold."""
        known = self._titles.get(tgid)
        return self._lasts_s(known, self._clock()) if known is not None else 0.0

    def keep(self, alive: AbstractSet[int]) -> None:
        """Forget all processes and threads but those *alive*."""
        for known in (self._titles, self._names, self._measured):
            for number in known.keys() - alive:
                del known[number]

    def _read(self, known: dict[int, _Title], tgid: int, read: Callable[[int], str | None]) -> str:
        now = self._clock()
        before = known.get(tgid)
        if before is not None and now < before.read_s + self._lasts_s(before, now):
            return before.text
        text = read(tgid)
        if text is None:
            text = before.text if before is not None else ""
        known[tgid] = _Title(text, before.born_s if before else now, now)
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
