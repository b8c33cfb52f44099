"""Moves threads that keep running in another layer than their hint's.

A thread whose name or cgroup changed has a refresh pending in the engine, which ignores its hint
until the thread wakes up. A thread that never sleeps would stay in its layer. A change of its nice
value and back makes the engine apply the hint as a wake-up does.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from attrs import define

from temper_core.kernel_text import kernel_lines
from temper_core.steering.thread_identity import is_same_thread

WALKS_ASTRAY = 2
"""The number of walks in a row in which a thread ran in the wrong layer before it is kicked."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
LOWEST_NICE = 19
_CAP_SYS_NICE = 23


class MisplacedThread(NamedTuple):
    """A thread whose layer, by the engine's record, is not its hint's."""

    tid: int
    start_ns: int
    run_ns: int


@define
class _Known:
    """The state of a stray thread: its run time, and the earliest moment of the next kick."""

    start_ns: int
    run_ns: int
    walks: int = 0
    kicks: int = 0
    not_before_s: float = 0.0


class Kicker:
    """Kicks threads that ran without following their hint. The pause doubles after each kick.

    ``kicked`` counts all kicks. Tests may replace ``kick``.
    """

    def __init__(self, kick: Callable[[int, int], bool] | None = None) -> None:
        self.kicked = 0
        self._kick = renice_and_back if kick is None else kick
        self._known: dict[int, _Known] = {}

    def look(self, strays: Iterable[MisplacedThread], now: float) -> bool:
        """Evaluate the strays of one walk, and kick those whose pause is over. Forget all others.

        Returns whether a stray needs another walk soon, because it is new or still runs. A
        sleeping thread follows by itself when it wakes up.
        """
        before, self._known = self._known, {}
        is_soon = False
        for stray in strays:
            state = before.get(stray.tid)
            if state is None or state.start_ns != stray.start_ns:
                state, has_run = _Known(stray.start_ns, stray.run_ns), True
            else:
                has_run = stray.run_ns > state.run_ns
                state.walks, state.run_ns = state.walks + has_run, stray.run_ns
            self._known[stray.tid] = state
            if state.walks >= WALKS_ASTRAY and now >= state.not_before_s:
                self._kick_one(stray.tid, state, now)
            is_soon = is_soon or (has_run and state.not_before_s <= now)
        return is_soon

    def _kick_one(self, tid: int, state: _Known, now: float) -> None:
        if self._kick(tid, state.start_ns):
            self.kicked += 1
        pause_s = min(FIRST_PAUSE_S * 2**state.kicks, LONGEST_PAUSE_S)
        state.walks, state.kicks, state.not_before_s = 0, state.kicks + 1, now + pause_s


def renice_and_back(tid: int, start_ns: int) -> bool:
    """Change the nice value of a thread by one and restore it. Return whether that was done.

    The thread is *tid*, started *start_ns* after boot. Another thread that has reused the id is
    left alone. The value rises and is restored, so no thread gains priority. Only a thread at the
    largest nice value is lowered instead.
    """
    if not is_same_thread(tid, start_ns):
        return False
    try:
        before = os.getpriority(os.PRIO_PROCESS, tid)
        shifted = before + 1 if before < LOWEST_NICE else before - 1
        try:
            os.setpriority(os.PRIO_PROCESS, tid, shifted)
        finally:
            if os.getpriority(os.PRIO_PROCESS, tid) == shifted:  # else its owner has changed it
                os.setpriority(os.PRIO_PROCESS, tid, before)
    except OSError:  # it has ended, or permission is denied
        return False
    return True


def may_renice(proc_root: Path | str = Path("/proc")) -> bool:
    """Whether this process may lower a nice value again (CAP_SYS_NICE, capabilities(7))."""
    try:
        status = (Path(proc_root) / "self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    line = next((line for line in kernel_lines(status) if line.startswith("CapEff:")), "CapEff: 0")
    return bool(int(line.split()[1], 16) >> _CAP_SYS_NICE & 1)
