"""All threads of the node at one moment: expected layer, hint and the engine's record of each."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from attrs import define, field

from temper_core.plan.membership import place_index
from temper_core.records.plans import LayerPlan
from temper_core.records.steering import NO_HINT, ThreadTruth
from temper_core.records.threads import ThreadIdentity
from temper_core.steering.columns import record_at, tids
from temper_core.steering.kernel import ThreadRecord
from temper_core.steering.kernel_records import read_threads
from temper_core.steering.scopes import PlacedCgroups


@define(frozen=True, slots=False, eq=False)
class Truths(Mapping[int, ThreadTruth]):
    """Threads by tid, each parsed on access. May be read from any thread.

    ``content`` is the buffer of a walk, ``names`` the names of layers by hint, ``layers`` the
    names of the engine's layers in its own order.
    """

    plan: LayerPlan
    cgroups: PlacedCgroups = field(repr=False)
    content: bytes = field(repr=False)
    names: Mapping[int, str] = field(factory=dict)
    layers: Sequence[str] = ()

    def __getitem__(self, tid: int) -> ThreadTruth:
        return self._spelt(record_at(self.content, self._places[tid]))

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def of_pod(self, key: str) -> Iterator[ThreadTruth]:
        """Yield the threads of the pod with that key (``namespace/name``)."""
        for record in read_threads(self.content):
            if not record.is_kernel and self._pod_of(record) == key:
                yield self._spelt(record)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {tid: place for place, tid in enumerate(tids(self.content))}

    @cached_property
    def _process_names(self) -> dict[int, str]:
        return {r.tid: r.comm for r in read_threads(self.content) if r.is_leader}

    def _pod_of(self, record: ThreadRecord) -> str:
        place = self.cgroups.places.get(record.cgroup_id)
        if place is None or not place.outranks_processes:
            process = self._process_names.get(record.tgid, "")
            cgroup = self.cgroups.paths.get(record.cgroup_id, "")
            identity = ThreadIdentity(f"{cgroup}/", record.comm, process)
            place = place_index(self.plan).place_of(identity)
        return place.pod if place is not None else ""

    def _spelt(self, record: ThreadRecord) -> ThreadTruth:
        return ThreadTruth(
            tid=record.tid,
            tgid=record.tgid,
            start_ns=record.start_ns,
            comm=record.comm,
            cgroup_id=record.cgroup_id,
            run_ns=record.run_ns,
            expected=self._named(record.expected),
            hinted=self._named(record.hint),
            layer=layer_name(self.layers, record.layer),
            is_decided=record.is_decided,
        )

    def _named(self, hint: int) -> str:
        return "" if hint == NO_HINT else self.names.get(hint, f"hint {hint}")


def layer_name(layers: Sequence[str], number: int | None) -> str:
    """Return the name of the engine's layer of that number, empty if there is none."""
    return layers[number] if number is not None and number < len(layers) else ""
