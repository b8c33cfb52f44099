"""Names of threads and parties at each level."""

from collections.abc import Iterable

from temper_plugin_tracer.trace.analysis.parties import (
    SOFTIRQS,
    PartyKind,
    kind_of,
    number_of,
)
from temper_plugin_tracer.trace.analysis.threads import ThreadTable
from temper_plugin_tracer.trace.roster import TracedThread

__all__ = ["Names", "Subjects"]

REAL_TIME_BELOW = 100
"""Kernel priorities below it belong to real-time threads (MAX_RT_PRIO)."""
ENGINE = "scx_layered"
KERNEL_THREADS = (
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "rcu_",
    "rcuc/",
    "rcub/",
    "rcuop/",
    "rcuog/",
    "cpuhp/",
    "idle_inject/",
    "kthreadd",
    "kswapd",
    "kcompactd",
    "khugepaged",
    "ksmd",
    "irq/",
    "jbd2/",
    "watchdog",
)
"""Beginnings of names of kernel threads, for traces that do not name processes."""
KTHREADD = 2
_PLAIN = {
    PartyKind.IDLE: ("(idle)", "idle"),
    PartyKind.UNKNOWN: ("(before the first switch)", "unknown"),
    PartyKind.THROTTLED: ("(throttled)", "throttled"),
    PartyKind.OTHERS: ("(others)", "others"),
}


class Subjects:
    """The names of the threads of a trace, and of what they are summed by."""

    def __init__(self, threads: Iterable[TracedThread]) -> None:
        self._known = {thread.tid: thread for thread in threads}

    def thread(self, tid: int) -> TracedThread:
        """Return what the trace knows of a thread."""
        return self._known.get(tid) or TracedThread(tid=tid, tgid=0, name="", process="")

    def of(self, tid: int, level: str) -> str:
        """Return the name of a thread's subject at *level*."""
        thread = self.thread(tid)
        if level == "thread":
            return f"{thread.name or '?'}[{tid}]"
        own = "" if level == "process" else str(getattr(thread, level) or "")
        if own and level == "group" and thread.pod:
            own = f"{thread.pod} {own}"
        return own or thread.process or thread.name or f"?[{tid}]"


class Names(Subjects):
    """The names of a report: of subjects, wakers and parties."""

    def __init__(self, threads: Iterable[TracedThread], table: ThreadTable) -> None:
        super().__init__(threads)
        self._table = table

    def place(self, tid: int) -> str:
        """Return pod or process and layer of a thread."""
        thread = self.thread(tid)
        home = thread.pod or thread.process
        return f"{home} ({thread.layer})" if thread.layer else home

    def waker(self, tid: int) -> str:
        """Return the name of a waker."""
        return self.of(tid, "thread") if tid else "(interrupt)"

    def party(self, code: int, level: str) -> tuple[str, str]:
        """Return name and kind of a party at *level*."""
        kind, number = kind_of(code), number_of(code)
        if kind is PartyKind.THREAD:
            return self.of(number, level), self._kind(number)
        if kind is PartyKind.INTERRUPT:
            return f"(interrupt {number})", "interrupt"
        if kind is PartyKind.SOFTIRQ:
            name = SOFTIRQS[number] if number < len(SOFTIRQS) else str(number)
            return f"(softirq {name})", "softirq"
        return _PLAIN[kind]

    def relation(self, subjects: Iterable[int], code: int) -> str:
        """Return what a party is to the threads *subjects*: of the same pod, layer or neither."""
        if kind_of(code) is not PartyKind.THREAD:
            return ""
        other = self.thread(number_of(code))
        threads = [self.thread(tid) for tid in subjects]
        if other.pod and any(thread.pod == other.pod for thread in threads):
            return "same pod"
        if other.layer and any(thread.layer == other.layer for thread in threads):
            return "same layer"
        return ""

    def _kind(self, tid: int) -> str:
        thread = self.thread(tid)
        if ENGINE in (thread.process, thread.name):
            return "engine"
        row = self._table.row(tid)
        if thread.name.startswith(KERNEL_THREADS) or thread.tgid == KTHREADD:
            return "kernel thread"
        if 0 <= row < self._table.count and self._table.prio[row] < REAL_TIME_BELOW:
            return "real-time thread"
        return "thread"
