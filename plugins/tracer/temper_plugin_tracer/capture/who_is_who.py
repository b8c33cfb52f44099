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


@frozen
class Membership:
    """A thread by the agent: its pod, its group of the profile, tier and layer."""

    pod: str = ""
    group: str = ""
    tier: str = ""
    layer: str = ""


@define
class SeenThreads:
    """The tids of the events, and the threads that the kernel has named."""

    _is_seen: np.ndarray = field(factory=lambda: np.zeros(MOST_TIDS, bool))
    _tgids: np.ndarray = field(factory=lambda: np.zeros(MOST_TIDS, np.uint32))
    known: dict[int, KnownThread] = field(factory=dict)

    def add(self, events: Iterable[np.ndarray], names: np.ndarray | None) -> None:
        """Take the events and names of a drain."""
        for each in events:
            kinds = each["kind"]
            self._note(chosen(each, kinds <= Kind.MIGRATION))
            self._mark(chosen(each, kinds <= Kind.WAKING)["prev"])
        if names is not None:
            self._name(names)

    def threads(self) -> list[KnownThread]:
        """Return the threads of the events, and the first threads of their processes."""
        tids = [int(tid) for tid in np.flatnonzero(self._is_seen) if tid]
        threads = {tid: self._thread(tid) for tid in tids}
        for thread in list(threads.values()):
            if thread.tgid and thread.tgid not in threads:
                threads[thread.tgid] = self._thread(thread.tgid)
        return list(threads.values())

    def _mark(self, tids: np.ndarray) -> None:
        self._is_seen[tids[tids < MOST_TIDS]] = True

    def _note(self, events: np.ndarray) -> None:
        """Take the threads of events with their processes."""
        valid = chosen(events, events["next"] < MOST_TIDS)
        self._is_seen[valid["next"]] = True
        self._tgids[valid["next"]] = valid["tgid"]

    def _name(self, names: np.ndarray) -> None:
        columns = (names[key].tolist() for key in ("tid", "tgid", "comm", "cgroup"))
        for tid, tgid, comm, cgroup in zip(*columns, strict=True):
            self.known[tid] = KnownThread(tid, tgid, text_of(comm), cgroup)

    def _tgid_of(self, tid: int) -> int:
        return int(self._tgids[tid]) if tid < MOST_TIDS else 0

    def _thread(self, tid: int) -> KnownThread:
        return self.known.get(tid) or KnownThread(tid, self._tgid_of(tid), "")


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
