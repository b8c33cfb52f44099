"""Names the threads of a capture: by the kernel's names, and by what the agent knew of the node."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from attrs import define, field, frozen

from temper_plugin_tracer.capture.kernel_layout import text_of
from temper_plugin_tracer.trace.events import Kind, chosen

MOST_TIDS = 1 << 22
"""PID_MAX_LIMIT of 64-bit kernels."""


@frozen
class KnownThread:
    """A thread as the kernel noted it last."""

    tid: int
    tgid: int
    name: str
    cgroup: int = 0
    is_selected: bool = False


@frozen
class Membership:
    """A thread by the agent: its pod, its group of the profile, tier and layer."""

    pod: str = ""
    group: str = ""
    tier: str = ""
    layer: str = ""


@define
class SeenThreads:
    """The threads of the events, and what the kernel has named."""

    _events: np.ndarray = field(factory=lambda: np.zeros(MOST_TIDS, np.uint32))
    """How many events each thread id has."""
    _tgids: np.ndarray = field(factory=lambda: np.zeros(MOST_TIDS, np.uint32))
    _end: int = 1
    """One more than the highest thread id so far. Ids beyond it are not looked through."""
    _names: list[np.ndarray] = field(factory=list)

    def add(self, events: Iterable[np.ndarray], names: np.ndarray | None) -> None:
        """Take the events and names of a drain."""
        for each in events:
            kinds, tids = each["kind"], each["next"]
            self._note(chosen(each, (kinds <= Kind.MIGRATION) & (tids < MOST_TIDS)))
            self._count(chosen(each["prev"], kinds <= Kind.WAKING))
        if names is not None and len(names):
            self._names.append(names)

    @property
    def count(self) -> int:
        """The number of threads of the events."""
        return int(np.count_nonzero(self._events[1 : self._end]))

    def threads(self, most: int = MOST_TIDS) -> list[KnownThread]:
        """Return the *most* threads with the most events, and the first threads of their processes.

        A program that starts threads without end must not take all memory: each of these takes
        about 1 KiB until it is written.
        """
        threads = self._named(self._busiest(most))
        tgids = {thread.tgid for thread in threads.values() if thread.tgid < MOST_TIDS}
        firsts = self._named(np.array(sorted(tgids - {0, *threads}), np.int64))
        return [*threads.values(), *firsts.values()]

    def _busiest(self, most: int) -> np.ndarray:
        """Return the ids of the *most* threads that have the most events."""
        tids: np.ndarray = np.flatnonzero(self._events[1 : self._end]) + 1
        if len(tids) <= most:
            return tids
        by_events = np.argsort(self._events[tids], kind="stable")
        return np.sort(tids[by_events[len(tids) - most :]])

    def _note(self, events: np.ndarray) -> None:
        """Take the threads of events with their processes."""
        self._count(events["next"])
        self._tgids[events["next"]] = events["tgid"]

    def _count(self, tids: np.ndarray) -> None:
        valid = tids[tids < MOST_TIDS].astype(np.intp)
        np.add.at(self._events, valid, np.uint32(1))  # with other types it takes 45 times as long
        self._end = max(self._end, int(valid.max(initial=0)) + 1)

    def _named(self, tids: np.ndarray) -> dict[int, KnownThread]:
        """Return threads with their last names."""
        threads = {tid: KnownThread(tid, int(self._tgids[tid]), "") for tid in tids.tolist()}
        selected: set[int] = set()
        is_wanted = np.zeros(MOST_TIDS, np.bool_)
        is_wanted[tids] = True
        for names in self._names:
            wanted = chosen(names, is_wanted[names["tid"] % MOST_TIDS])
            selected.update(wanted["tid"][wanted["is_selected"] > 0].tolist())
            columns = (wanted[key].tolist() for key in ("tid", "tgid", "comm", "cgroup"))
            for tid, tgid, comm, cgroup in zip(*columns, strict=True):
                threads[tid] = KnownThread(tid, tgid, text_of(comm), cgroup, tid in selected)
        return threads


@frozen
class Memberships:
    """Finds the membership of threads.

    Attributes:
        by_tid: The threads that the agent has looked at, with their tgid.
        by_cgroup: Pod and tier by cgroup id.

    """

    by_tid: Mapping[int, tuple[int, Membership]] = field(factory=dict)
    by_cgroup: Mapping[int, Membership] = field(factory=dict)

    def of(self, threads: Sequence[KnownThread]) -> dict[int, Membership]:
        """Return the membership of each thread by tid.

        A thread that the agent has not looked at has the pod of its cgroup, or of its process, and
        the layer that most threads of its process have.
        """
        own = {thread.tid: found for thread in threads if (found := self._own(thread))}
        by_process: dict[int, Counter[Membership]] = {}
        for thread in threads:
            if thread.tid in own:
                votes = by_process.setdefault(thread.tgid, Counter())
                votes[own[thread.tid]] += 1
        return {
            thread.tid: own.get(thread.tid) or self._by(thread, by_process) for thread in threads
        }

    def _own(self, thread: KnownThread) -> Membership | None:
        tgid, found = self.by_tid.get(thread.tid, (0, None))
        return found if tgid == thread.tgid else None  # or an earlier thread of that tid

    def _by(self, thread: KnownThread, by_process: Mapping[int, Counter[Membership]]) -> Membership:
        of_cgroup = self.by_cgroup.get(thread.cgroup)
        votes = by_process.get(thread.tgid)
        if votes:
            usual = votes.most_common(1)[0][0]
            pod, tier = (of_cgroup.pod, of_cgroup.tier) if of_cgroup else (usual.pod, usual.tier)
            return Membership(pod, "", tier, usual.layer)
        return of_cgroup or Membership()
