"""Finds the threads of a recorded node that another plan would put into other layers."""

from attrs import define, field, frozen

from temper_core.observe.places import remember
from temper_core.plan.membership import layer_of
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import Snapshot, ThreadSample
from temper_core.records.threads import ThreadIdentity

MOST_KINDS = 5_000
"""Limit on distinct entries. Further threads are counted under ``OTHERS``."""
OTHERS = "(others)"

Identity = tuple[str, str, str, int, bool, bool]


@frozen
class MovedThreads:
    """Threads of one name and owner that another plan puts into another layer.

    ``threads`` counts them over the whole recording. ``cpu_used`` is their mean use in CPUs.
    """

    owner: str
    comm: str
    before: str
    after: str
    threads: int
    cpu_used: float


@define
class _Kind:
    """Threads of one name: their (tid, start) pairs, and their CPU use summed over all looks."""

    seen: set[tuple[int, int]] = field(factory=set)
    cpu_used: float = 0.0


@define(eq=False)
class ThreadsElsewhere:
    """Compares two plans for every thread of every look."""

    _kinds: dict[tuple[str, str, str, str], _Kind] = field(factory=dict)
    _plans: tuple[LayerPlan, LayerPlan] | None = None
    _known: dict[Identity, tuple[str, str]] = field(factory=dict)

    def count(self, snapshot: Snapshot, plan: LayerPlan) -> None:
        """Count the threads of *snapshot* for which *plan* and the recorded plan disagree."""
        recorded = snapshot.plan
        if recorded is None:
            return
        if self._plans is None or self._plans[0] is not recorded or self._plans[1] is not plan:
            self._plans, self._known = (recorded, plan), {}
        for thread in snapshot.threads:
            before, after = self._layers(thread, recorded, plan)
            if before != after and before and after:
                self._note(thread, before, after)

    def result(self, looks: int) -> tuple[MovedThreads, ...]:
        """Return the counted threads, those with the highest CPU use first."""
        moved = [
            MovedThreads(*kind, len(threads.seen), round(threads.cpu_used / max(1, looks), 6))
            for kind, threads in self._kinds.items()
        ]
        return tuple(sorted(moved, key=lambda kind: (-kind.cpu_used, kind.owner, kind.comm)))

    def _layers(
        self, thread: ThreadSample, recorded: LayerPlan, plan: LayerPlan
    ) -> tuple[str, str]:
        is_leader = thread.tid == thread.tgid
        key = (
            thread.cgroup,
            thread.comm,
            thread.process,
            thread.uid,
            thread.is_kthread,
            is_leader,
        )
        layers = self._known.get(key)
        if layers is None:
            identity = ThreadIdentity(*key)
            # Decisions of user space from observed behaviour cannot be repeated. Both plans decide
            # for the same thread identity. A static plan leaves no decision to user space.
            before = _layer(recorded, identity) if recorded.is_steered else thread.expected_layer
            layers = (before, _layer(plan, identity))
            remember(self._known, key, layers)
        return layers

    def _note(self, thread: ThreadSample, before: str, after: str) -> None:
        owner = "/".join(filter(None, (thread.namespace, thread.pod))) or thread.process
        key = (owner, thread.comm, before, after)
        if key not in self._kinds and len(self._kinds) >= MOST_KINDS:
            key = (OTHERS, OTHERS, before, after)
        kind = self._kinds.setdefault(key, _Kind())
        kind.seen.add((thread.tid, thread.start_ticks))
        kind.cpu_used += thread.cpu_used


def _layer(plan: LayerPlan, identity: ThreadIdentity) -> str:
    layer = layer_of(plan, identity)
    return layer.name if layer is not None else ""
