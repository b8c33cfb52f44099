"""Identifies the threads of a window: names from the BPF object, pods and layers from the plan.

Threads that lived between two snapshots have names too. They have a pod only if their cgroup is
known from other threads, or if they are still alive.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TypeVar

from temper_core import (
    Mode,
    Party,
    Places,
    Snapshot,
    ThreadIdentity,
    ThreadSample,
    cgroup_namespace,
    layer_of,
    parse_cgroup,
)
from temper_plugin_tracer.kernel_records import PartyRecord

PF_KTHREAD = 0x0020_0000
ROOT_CGROUP = 1
"""Id of the root cgroup. On a hybrid host it holds all threads, which are in v1 hierarchies."""
MOST_READ = 256
"""Files of /proc read for the cgroups of one window, at some 15 µs each."""
MOST_NAMED = 1_024
"""Parties of a window that are cached. The published edges and blockings name fewer."""
NOBODY = Party(0, "")
MOST_REMEMBERED = 4_096
"""Cgroup ids whose path is cached."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class ThreadCgroups:
    """A cache of cgroup paths by the kernel's cgroup id."""

    def __init__(self, proc_root: str = "/proc") -> None:
        self._proc_root = proc_root
        self._known: dict[int, str] = {}
        self._of_processes: dict[int, str] = {}
        self._left = 0

    def new_window(self) -> None:
        """Discard the entries that may have changed since the last window."""
        self._of_processes.clear()
        self._left = MOST_READ

    def of(self, tid: int, record: PartyRecord, sample: ThreadSample | None) -> str:
        """Return a thread's cgroup as the engine spells it, or "" if it is unknown."""
        if record.flags & PF_KTHREAD:
            return "/"
        known, key = self._known, record.cgroup
        if key == ROOT_CGROUP:
            known, key = self._of_processes, record.tgid
        cgroup = known.get(key)
        if cgroup is None:
            cgroup = sample.cgroup if sample is not None else self._read(tid)
            if cgroup:
                remember(known, key, cgroup)
        return cgroup

    def _read(self, tid: int) -> str:
        if self._left <= 0:
            return ""
        self._left -= 1
        try:
            return parse_cgroup(
                Path(f"{self._proc_root}/{tid}/cgroup").read_bytes(), cgroup_namespace()
            )
        except OSError:
            return ""  # it has ended


class PartyRoster:
    """Identifies the parties of one window, each once."""

    def __init__(
        self,
        records: Mapping[int, PartyRecord],
        snapshot: Snapshot | None,
        places: Places,
        homes: ThreadCgroups,
    ) -> None:
        self._records = records
        self._places = places
        self._homes = homes
        threads = snapshot.threads if snapshot is not None else ()
        self._samples = {thread.tid: thread for thread in threads}
        self._is_enforcing = snapshot is not None and snapshot.status.mode is Mode.ENFORCING
        self._layers: dict[ThreadIdentity, str] = {}
        self._known: dict[int, Party] = {}
        homes.new_window()

    @property
    def sampled(self) -> AbstractSet[int]:
        """The tids of the threads that the snapshot lists."""
        return self._samples.keys()

    def party(self, tid: int) -> Party:
        """Return the party of *tid*, without a name if neither side had room for it."""
        party = self._known.get(tid)
        if party is None:
            party = self._named(tid) if tid else NOBODY
            remember(self._known, tid, party, MOST_NAMED)
        return party

    def _named(self, tid: int) -> Party:
        record, sample = self._records.get(tid), self._samples.get(tid)
        if record is None:
            return Party(tid, "") if sample is None else _party_of(sample)
        if sample is not None and sample.tgid != record.tgid:
            sample = None  # an earlier thread of that tid
        comm, process = _text(record.comm), _text(record.process)
        cgroup = self._homes.of(tid, record, sample)
        if sample is not None and sample.layer:
            layer = sample.layer
        else:
            is_leader, is_kthread = tid == record.tgid, bool(record.flags & PF_KTHREAD)
            layer = self._layer_of(
                ThreadIdentity(cgroup, comm, process, record.uid, is_kthread, is_leader)
            )
        return Party(tid, comm, process, self._places.of(cgroup, process).key, layer)

    def _layer_of(self, thread: ThreadIdentity) -> str:
        """Return the layer that an enforced plan gives a thread, or "" without one."""
        if not self._is_enforcing or self._places.plan is None or not thread.cgroup:
            return ""
        name = self._layers.get(thread)
        if name is None:
            layer = layer_of(self._places.plan, thread)
            name = layer.name if layer is not None else ""
            remember(self._layers, thread, name, MOST_NAMED)
        return name


def remember(
    answers: dict[Key, Answer], key: Key, answer: Answer, most: int = MOST_REMEMBERED
) -> None:
    """Cache an answer. All others are discarded first once there are *most*."""
    if len(answers) >= most:
        answers.clear()
    answers[key] = answer


def _party_of(sample: ThreadSample) -> Party:
    pod = f"{sample.namespace}/{sample.pod}" if sample.namespace else sample.pod
    return Party(sample.tid, sample.comm, sample.process, pod, sample.layer)


def _text(name: bytes) -> str:
    return name.split(b"\0", 1)[0].decode("utf-8", "replace")
