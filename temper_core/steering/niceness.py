"""Nice values of threads that a profile gives more weight within their layer.

The engine's virtual time of a layer advances by used time over the thread's own weight, which
follows its nice value (scx_layered 1.1.4, ``layered_stopping``). Only threads of the ordinary
policy with nice value 0 are changed: any other value is the program's own.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import structlog
from attrs import define, frozen

from temper_core.steering.nice_record import NicedThread, NiceRecord
from temper_core.steering.scheduling import ORDINARY, scheduling_of, set_reset_on_fork
from temper_core.steering.thread_identity import in_first_pid_namespace, is_same_thread, leader_of

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

MOST_NICED = 4_096
CONFIRMED_S = 60.0
"""Seconds after which a thread that no walk has judged again gets its nice value back."""
NO_RIGHT = "boost and latency need CAP_SYS_NICE; their threads have the weight of their neighbours"
TOO_MANY = f"boost and latency change {MOST_NICED} threads at most"
MOST_OF_PROCESS = 1_024
"""So that one process leaves room to others."""
MOST_LOOKED_AT = 1_024
"""Threads that a walk looks at to change them, 0.1 ms each. The next walk looks at others."""
TOO_MANY_OF_PROCESS = f"boost and latency change {MOST_OF_PROCESS} threads of a process at most"


class WantedNice(NamedTuple):
    """The nice value that the plan wants for one thread, 0 for none. *pod* is the thread's."""

    tid: int
    start_ns: int
    nice: int
    pod: str = ""


@define
class _Held:
    nice: int
    start_ns: int
    confirmed_s: float
    pod: str
    leader: int
    leader_start_ns: int

    def recorded(self, tid: int) -> NicedThread:
        return NicedThread(tid, self.start_ns, self.nice, self.leader, self.leader_start_ns)


class Niceness:
    """Changes nice values, and gives them back. ``record`` survives the agent's death.

    ``own`` counts the threads that were left alone, because they set their own. ``problem`` is why
    a wanted value was not set, empty if there is none.
    """

    def __init__(self, record: NiceRecord, *, is_allowed: bool) -> None:
        self.problem = ""
        self._record = record
        self._is_allowed = is_allowed
        self._held: dict[int, _Held] = {}
        self._own: dict[int, int] = {}
        self._refused: dict[int, int] = {}
        """Threads without room for them, until there is some."""

    @property
    def held(self) -> int:
        """The number of threads whose nice value is changed now."""
        return len(self._held)

    @property
    def own(self) -> int:
        """The number of threads with a nice value or policy of their own."""
        return len(self._own)

    def follow(self, wanted: Iterable[WantedNice], now: float, *, is_all: bool = False) -> None:
        """Set the nice values of the judged threads. With *is_all* all others get theirs back."""
        judged = {thread.tid: thread for thread in wanted}
        back = [tid for tid in self._held if self._is_over(tid, judged, is_all=is_all)]
        for tid in back:
            self._give_back(tid)
        fresh = [thread for thread in judged.values() if thread.nice and self._is_new(thread, now)]
        if fresh:
            self._take_all(fresh, now)
        elif back:
            self._write()

    def forget(self, alive: AbstractSet[int], now: float) -> None:
        """Forget ended threads, and release those that no walk has judged for a while."""
        for left_alone in (self._own, self._refused):
            for tid in left_alone.keys() - alive:
                del left_alone[tid]
        over = [
            tid
            for tid, held in self._held.items()
            if tid not in alive or now - held.confirmed_s > CONFIRMED_S
        ]
        for tid in over:
            self._give_back(tid)
        if over:
            self._write()

    def release(self) -> None:
        """Give every thread its nice value back, and remove the record."""
        if not self._held:
            return
        for tid in tuple(self._held):
            self._give_back(tid)
        self._record.remove()
        self.problem = ""

    def _is_over(self, tid: int, judged: Mapping[int, WantedNice], *, is_all: bool) -> bool:
        wanted, held = judged.get(tid), self._held[tid]
        if wanted is None:
            return is_all
        return (wanted.start_ns, wanted.nice) != (held.start_ns, held.nice)

    def _is_new(self, wanted: WantedNice, now: float) -> bool:
        """Whether the thread has still to be changed. A thread that has its own value has not."""
        held = self._held.get(wanted.tid)
        if held is not None:
            held.confirmed_s = now
            if _nice_of(wanted.tid) in (held.nice, None):
                return False
            # Its program has set another value since.
            self._give_back(wanted.tid)
            self._own[wanted.tid] = wanted.start_ns
        left_alone = (self._own.get(wanted.tid), self._refused.get(wanted.tid))
        return wanted.start_ns not in left_alone

    def _take_all(self, fresh: Iterable[WantedNice], now: float) -> None:
        if not self._is_allowed:
            self.problem = NO_RIGHT
            return
        self.problem = ""
        taken = self._chosen(fresh, now)
        # The record comes first: an agent that is killed in between leaves nothing unknown.
        if not taken or not self._write(*(held.recorded(tid) for tid, held in taken.items())):
            return
        for tid, held in taken.items():
            try:
                _take(tid, held)
            except PermissionError:
                self.problem = NO_RIGHT
            except OSError:  # it has just ended
                continue
            else:
                self._held[tid] = held

    def _chosen(self, fresh: Iterable[WantedNice], now: float) -> dict[int, _Held]:
        """Return the threads that may be changed and that there is room for."""
        chosen: dict[int, _Held] = {}
        of_process = Counter(held.leader or tid for tid, held in self._held.items())
        of_pod = Counter(held.pod for held in self._held.values())
        for thread in islice(fresh, MOST_LOOKED_AT):
            leader = leader_of(thread.tid)
            process = leader[0] or thread.tid
            if of_process[process] >= MOST_OF_PROCESS:
                self.problem = TOO_MANY_OF_PROCESS
                self._refused[thread.tid] = thread.start_ns
            elif not self._may_take(thread):
                continue
            elif len(self._held) + len(chosen) < MOST_NICED or self._makes_room(thread.pod, of_pod):
                of_process[process] += 1
                of_pod[thread.pod] += 1
                held = _Held(thread.nice, thread.start_ns, now, thread.pod, *leader)
                chosen[thread.tid] = held
            else:
                self.problem = TOO_MANY
                self._refused[thread.tid] = thread.start_ns
        return chosen

    def _makes_room(self, pod: str, of_pod: Counter[str]) -> bool:
        """Take a place from the pod with the most, if *pod* has fewer even with that place."""
        largest, most = of_pod.most_common(1)[0]
        if of_pod[pod] + 1 >= most:
            return False
        tid = next((tid for tid, held in self._held.items() if held.pod == largest), None)
        if tid is None:  # all of them were chosen just now
            return False
        of_pod[largest] -= 1
        self._refused[tid] = self._held[tid].start_ns
        self._restore(tid)
        return True

    def _may_take(self, thread: WantedNice) -> bool:
        try:
            is_untouched = scheduling_of(thread.tid).is_untouched
        except OSError:  # it has ended
            return False
        if is_untouched:
            return is_same_thread(thread.tid, thread.start_ns)
        self._own[thread.tid] = thread.start_ns
        return False

    def _give_back(self, tid: int) -> None:
        self._refused.clear()
        self._restore(tid)

    def _restore(self, tid: int) -> None:
        held = self._held.pop(tid)
        thread = held.recorded(tid)
        if held.leader in self._held:
            # The leader has an entry of its own, and keeps its value while that is wanted.
            thread = thread._replace(leader=0)
        try:
            give_back(thread)
        except PermissionError:
            self.problem = NO_RIGHT

    def _write(self, *more: NicedThread) -> bool:
        threads = [held.recorded(tid) for tid, held in self._held.items()]
        self.problem = self._record.write([*threads, *more]) or self.problem
        return not self._record.failed


def give_back(thread: NicedThread) -> bool:
    """Set the nice value of a thread back to 0. Return whether that was done.

    Raises PermissionError if this process may not. A value of 0 or more that the program has set
    since stays, and so does the flag of another policy. A negative value does not stay: without
    rights a program may raise -10 to -9 (setpriority(2)), and would keep that weight. A thread that
    has executed a program is found by its leader.
    """
    tid = thread.tid
    if not is_same_thread(tid, thread.start_ns):
        tid = thread.leader
        if not tid or not is_same_thread(tid, thread.leader_start_ns):
            return False
    try:
        now = scheduling_of(tid)
        nice = os.getpriority(os.PRIO_PROCESS, tid)
        is_ours = nice < 0 and now.resets_on_fork
        if is_ours:
            os.setpriority(os.PRIO_PROCESS, tid, 0)
        if now.policy == ORDINARY and (is_ours or tid == thread.tid):
            set_reset_on_fork(tid, is_set=False)
    except PermissionError:
        raise
    except OSError:  # it has just ended
        return False
    return is_ours


@frozen
class GivenBack:
    """The number of threads that were changed, and of those that this process may not change.

    ``is_foreign`` is whether the record has others, which are not understood.
    """

    changed: int = 0
    denied: int = 0
    is_foreign: bool = False


def give_back_all(record: NiceRecord, proc_root: str = "/proc") -> GivenBack:
    """Undo what an agent that was killed has recorded.

    The record is removed, but for the threads that this process may not change. Outside of the
    host's pid namespace these are all, because their ids mean other threads there. A record that is
    not understood stays as it is.
    """
    recorded = record.read()
    if recorded and not in_first_pid_namespace(proc_root):
        return GivenBack(denied=len(recorded))
    changed, denied = 0, []
    for thread in recorded:
        try:
            changed += give_back(thread)
        except PermissionError:
            denied.append(thread)
    if record.is_foreign:
        log.error("nice_values_not_understood", file=str(record.path))
    elif denied:
        record.write(denied)
    else:
        record.remove()
    return GivenBack(changed, len(denied), record.is_foreign)


def _take(tid: int, held: _Held) -> None:
    """Set the value of a thread, so that its children do not inherit it. Raises OSError.

    The record was written since the thread was looked at, so that another thread may have its id.
    """
    if not is_same_thread(tid, held.start_ns):
        raise ProcessLookupError(tid)
    set_reset_on_fork(tid, is_set=True)
    try:
        os.setpriority(os.PRIO_PROCESS, tid, held.nice)
    except OSError:
        with suppress(OSError):  # it has just ended
            set_reset_on_fork(tid, is_set=False)
        raise
    if not is_same_thread(tid, held.start_ns):
        with suppress(OSError):
            _take_back(tid, held.nice)


def _take_back(tid: int, nice: int) -> None:
    """Undo ``_take`` for another thread that got the id in between. Raises OSError."""
    if os.getpriority(os.PRIO_PROCESS, tid) == nice:
        os.setpriority(os.PRIO_PROCESS, tid, 0)
    set_reset_on_fork(tid, is_set=False)


def _nice_of(tid: int) -> int | None:
    try:
        return os.getpriority(os.PRIO_PROCESS, tid)
    except OSError:
        return None
