"""Finds the pod, container and layer of a thread in the plan."""

from collections.abc import Iterable
from typing import TypeVar

from attrs import frozen

from temper_core.observe.thread_rows import ThreadRow
from temper_core.plan.membership import layer_of
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.pods import Origin, Pod
from temper_core.records.threads import ThreadIdentity
from temper_core.records.tiers import Tier

Key = TypeVar("Key")
Answer = TypeVar("Answer")

MOST_REMEMBERED = 4_096
"""Entries of each cache, some 350 bytes each. Short-lived threads with unique names add new keys
all the time."""
COMM_LENGTH = 15


@frozen
class ThreadPlace:
    """The pod and container of a thread. All fields are empty for a thread outside of pods."""

    namespace: str = ""
    pod: str = ""
    container: str = ""
    tier: Tier | None = None
    key: str = ""
    uid: str = ""


NOWHERE = ThreadPlace()


class Places:
    """Lookups in a plan's assignments, cached per cgroup. Make one object per plan."""

    def __init__(self, plan: LayerPlan | None) -> None:
        self.plan = plan
        self.pods: dict[str, tuple[str, ...]] = {}
        self.records: dict[str, Pod] = {}
        self._by_cgroup: dict[str, tuple[ThreadPlace, Pod]] = {}
        self._by_process: dict[str, ThreadPlace] = {}
        self._units: set[str] = set()
        self._known: dict[str, ThreadPlace] = {}
        self._seats: dict[tuple[str, str, str, int, bool, bool], tuple[ThreadPlace, str]] = {}
        for assignment in plan.assignments if plan else ():
            self._enter(assignment)

    def _enter(self, assignment: Assignment) -> None:
        pod = assignment.pod
        place = ThreadPlace(pod.namespace, pod.name, "", assignment.tier, pod.key, pod.uid)
        self.pods[pod.uid] = _outermost(pod.cgroups)
        self.records[pod.uid] = pod
        if pod.origin is Origin.UNIT:
            self._units.add(pod.uid)
        for cgroup in pod.cgroups:
            self._by_cgroup[cgroup] = (place, pod)
        if not pod.cgroups:  # a workload whose rule names a process
            for container in pod.containers:
                for process in container.processes:
                    self._by_process[process[:COMM_LENGTH]] = place

    def changed_since(self, before: "Places") -> set[str]:
        """Return the cgroups of pods that have changed since *before*."""
        return {
            path
            for uid, pod in self.records.items()
            if before.records.get(uid) != pod
            for path in self.pods[uid]
        }

    def of(self, cgroup: str, process: str) -> ThreadPlace:
        """Return the place of a thread of *process* in *cgroup*, by the longest prefix.

        Rules by process take threads of units and of no pod. Authors of other pods choose the names
        of their processes, and a workload with a cgroup was asked for itself.
        """
        place = self._known.get(cgroup)
        if place is None:
            place = self._search(cgroup)
            remember(self._known, cgroup, place)
        is_open = place is NOWHERE or place.uid in self._units
        return self._by_process.get(process, place) if is_open else place

    def seat_of(self, row: ThreadRow) -> tuple[ThreadPlace, str]:
        """Return a thread's place, and its layer by the plan ("" for none)."""
        key = (row.cgroup, row.comm, row.process, row.uid, row.is_kthread, row.tid == row.tgid)
        seat = self._seats.get(key)
        if seat is None:
            seat = self.of(row.cgroup, row.process), self._layer_of(ThreadIdentity(*key))
            remember(self._seats, key, seat)
        return seat

    def _layer_of(self, thread: ThreadIdentity) -> str:
        layer = layer_of(self.plan, thread) if self.plan is not None else None
        return layer.name if layer else ""

    def _search(self, cgroup: str) -> ThreadPlace:
        entry, prefix = self._by_cgroup.get(cgroup), ""
        if entry is None:
            for name in cgroup.split("/")[:-1]:
                prefix += f"{name}/"
                entry = self._by_cgroup.get(prefix, entry)
        if entry is None:
            return NOWHERE
        place, pod = entry
        container = _container_name(pod, cgroup)
        if not container:
            return place
        return ThreadPlace(place.namespace, place.pod, container, place.tier, place.key, place.uid)


def _container_name(pod: Pod, cgroup: str) -> str:
    for container in pod.containers:
        runtime_id = container.runtime_id.rpartition("://")[2]
        if runtime_id and runtime_id in cgroup:
            return container.name
    return ""


def _outermost(cgroups: Iterable[str]) -> tuple[str, ...]:
    """Drop cgroups below another one, whose counters already include theirs."""
    outer: list[str] = []
    for cgroup in sorted(set(cgroups)):
        if not any(cgroup.startswith(above) for above in outer):
            outer.append(cgroup)
    return tuple(outer)


def remember(
    answers: dict[Key, Answer], key: Key, answer: Answer, most: int = MOST_REMEMBERED
) -> None:
    """Store an answer. Once there are *most*, all earlier answers are dropped."""
    if len(answers) >= most:
        answers.clear()
    answers[key] = answer
