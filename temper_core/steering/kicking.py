"""Threads that run on in another layer than their hint says, and how they are made to follow.

A thread whose name or cgroup changed has a refresh pending in the engine, which then ignores its
hint until the thread wakes up. One that never sleeps would stay where it is. Changing its nice
value and back takes it through the same door as a wake-up.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from attrs import define

WALKS_ASTRAY = 2
"""In so many walks in a row it must have run, and not have followed."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
LOWEST_NICE = 19
_CAP_SYS_NICE = 23
NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class MisplacedThread(NamedTuple):
    """A thread whose layer, by the engine's own record, is not its hint's."""

    tid: int
    start_ns: int
    run_ns: int


@define
class _Known:
    """What is remembered of a stray thread: when it last had run, and when it may be kicked."""

    start_ns: int
    run_ns: int
    walks: int = 0
    kicks: int = 0
    not_before_s: float = 0.0


class Kicker:
    """Kicks threads that have run and not followed. Each ever more rarely if it does not help.

    ``kicked`` counts from the start. ``kick`` may be replaced by tests.
    """

    def __init__(self, kick: Callable[[int, int], bool] | None = None) -> None:
        self.kicked = 0
        self._kick = renice_and_back if kick is None else kick
        self._known: dict[int, _Known] = {}

    def look(self, strays: Iterable[MisplacedThread], now: float) -> bool:
        """Judge the strays of one walk, kick whom it is time for. All others are forgotten.

        Tells whether any of them is soon to be looked at again: it is new, or runs on. One that
        sleeps follows by itself when it wakes up.
        """
        before, self._known = self._known, {}
        is_soon = False
        for stray in strays:
            known = before.get(stray.tid)
            if known is None or known.start_ns != stray.start_ns:
                known, has_run = _Known(stray.start_ns, stray.run_ns), True
            else:
                has_run = stray.run_ns > known.run_ns
                known.walks, known.run_ns = known.walks + has_run, stray.run_ns
            self._known[stray.tid] = known
            if known.walks >= WALKS_ASTRAY and now >= known.not_before_s:
                self._kick_one(stray.tid, known, now)
            is_soon = is_soon or (has_run and known.not_before_s <= now)
        return is_soon

    def _kick_one(self, tid: int, known: _Known, now: float) -> None:
        if self._kick(tid, known.start_ns):
            self.kicked += 1
        pause_s = min(FIRST_PAUSE_S * 2**known.kicks, LONGEST_PAUSE_S)
        known.walks, known.kicks, known.not_before_s = 0, known.kicks + 1, now + pause_s


def renice_and_back(tid: int, start_ns: int) -> bool:
    """Change the nice value of a thread by one and restore it. Tell whether that was done.

    It is *tid*, started *start_ns* after boot. Another that has taken its number since is left
    alone. The value only rises, and comes back, so nobody gains by it. A thread at the very end
    of the scale can only be moved the other way.
    """
    if not _is_same(tid, start_ns):
        return False
    try:
        before = os.getpriority(os.PRIO_PROCESS, tid)
        other = before + 1 if before < LOWEST_NICE else before - 1
        try:
            os.setpriority(os.PRIO_PROCESS, tid, other)
        finally:
            if os.getpriority(os.PRIO_PROCESS, tid) == other:  # else its owner has set another
                os.setpriority(os.PRIO_PROCESS, tid, before)
    except OSError:  # it has gone, or may not be touched
        return False
    return True


def _is_same(tid: int, start_ns: int) -> bool:
    """Whether *tid* is the thread of that start, as exactly as proc_pid_stat(5) tells it."""
    try:
        told = Path(f"/proc/{tid}/stat").read_bytes()
    except OSError:
        return False  # it has gone
    ticks = int(told.rpartition(b")")[2].split()[19])
    return abs(ticks - start_ns // NS_PER_TICK) <= 1  # the kernel rounds by another way


def may_renice(proc_root: Path | str = Path("/proc")) -> bool:
    """Whether this process may take a nice value back (CAP_SYS_NICE, capabilities(7))."""
    try:
        status = (Path(proc_root) / "self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    line = next((line for line in status.splitlines() if line.startswith("CapEff:")), "CapEff: 0")
    return bool(int(line.split()[1], 16) >> _CAP_SYS_NICE & 1)
