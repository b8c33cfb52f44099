"""The demand of each container of a workload, over its replicas on all nodes."""

import binascii
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping

from attrs import define, field

from temper_core.console import Row
from temper_core.observed import count, number, rows, table, text
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.advice.suggestions import PodTreatment
from temper_plugin_rightsizer.demand.growth import Growth
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.fleet.demands import Key
from temper_plugin_rightsizer.fleet.workloads import NO_OWNER, Owners, Workload
from temper_plugin_rightsizer.store.packing import MOST, DamagedError, unpack

DAY_S = 86_400
LEAST_BYTES_PER_HOUR = 1.0
"""A leak that is slower never meets its limit."""
LONGEST_S = 14 * DAY_S
"""The history of an agent. Intervals of a day at most may begin before the window."""

Places = Mapping[tuple[str, str], tuple[str, Workload]]
"""The node and the workload of each pod, by namespace and name."""


@define
class WorkloadDemand:
    """The demand of one container, merged over its replicas.

    ``pods`` are the replicas, ``growths`` the growth of the memory of each. ``learned_s`` is the
    time of the replica that was measured longest. ``current`` has the largest requests and limits.
    ``treatments`` has the number of replicas that get each.
    """

    demand: IntervalDemand = field(factory=IntervalDemand)
    pods: set[str] = field(factory=set)
    growths: list[Growth | None] = field(factory=list)
    learned_s: int = 0
    current: Resources = Resources()
    treatments: Counter[PodTreatment] = field(factory=Counter)

    def add(self, row: Row, demand: IntervalDemand) -> None:
        """Add a replica by the *row* of its agent."""
        self.pods.add(text(row, "pod"))
        self.demand.merge(demand)
        self.growths.append(_growth(table(row, "growth")))
        self.learned_s = max(self.learned_s, demand.seconds)
        self.current = _largest(self.current, table(row, "current"))
        self.treatments[_treatment(table(row, "treatment"))] += 1

    @property
    def treatment(self) -> PodTreatment:
        """The amount that most of the replicas get."""
        return max(self.treatments, key=self.treatments.__getitem__, default=PodTreatment())


@define
class ClusterDemand:
    """The demand of all workloads. *owners* has the controllers of ReplicaSets and Jobs.

    An agent reports the pods on its own node. *places* has the node and the workload of each, as
    the API server knows them. Without any, the agents are believed.
    """

    owners: Owners
    places: Places = field(factory=dict)
    found: dict[Key, WorkloadDemand] = field(factory=dict, init=False)
    damaged: int = field(default=0, init=False)
    left_out: int = field(default=0, init=False)
    elsewhere: dict[str, int] = field(factory=dict, init=False)

    def add(self, answer: Row, node: str) -> None:
        """Add the containers of the agent on *node*.

        One whose demand is damaged, or of a longer time than the window, counts as that. Those of
        pods that are not on the node are counted in ``elsewhere``.
        """
        self.left_out += count(answer, "left_out") or 0
        longest_s = min(count(answer, "window_s") or 0, LONGEST_S) + DAY_S
        for row in rows(answer, "containers"):
            workload = self._workload(row, node)
            if workload is None:
                self.elsewhere[node] = self.elsewhere.get(node, 0) + 1
                continue
            demand = _demand(row)
            if demand is None or any(part.seconds > longest_s for part in _parts(demand)):
                self.damaged += 1
                continue
            key = workload, text(row, "container")
            self.found.setdefault(key, WorkloadDemand()).add(row, demand)

    def rows(self) -> Iterator[tuple[Key, WorkloadDemand]]:
        """Yield the containers with any demand, in order."""
        for key in sorted(self.found):
            if self.found[key].demand.seconds:
                yield key, self.found[key]

    def _workload(self, row: Row, node: str) -> Workload | None:
        """Return the workload of a row. None if its pod is not on *node*."""
        namespace, pod = text(row, "namespace"), text(row, "pod")
        # A workload that the agent's settings or `temper run` started is no pod, and has no
        # namespace.
        if namespace and self.places:
            place, workload = self.places.get((namespace, pod), ("", None))
            return workload if place == node else None
        kind, _, name = text(row, "owner").partition("/")
        if kind in NO_OWNER or not name:
            return Workload(namespace, "Pod", pod)
        return self.owners.controller(namespace, kind, name)


def _demand(row: Row) -> IntervalDemand | None:
    """Return the histograms of a row. None if they are damaged."""
    try:
        demand = _unpacked(row, "demand")
        demand.day_before = _unpacked(row, "day_before") if row.get("day_before") else None
    except (DamagedError, binascii.Error, ValueError):
        return None
    return demand


def _unpacked(row: Row, name: str) -> IntervalDemand:
    return unpack(b64decode(text(row, name), validate=True))


def _parts(demand: IntervalDemand) -> Iterator[IntervalDemand]:
    yield demand
    if demand.day_before is not None:
        yield demand.day_before


def _growth(row: Mapping[str, object]) -> Growth | None:
    rate, sizes = (
        number(row, "bytes_per_hour"),
        [_amount(row, name) for name in ("seconds", "first_bytes", "last_bytes")],
    )
    if rate is None or not LEAST_BYTES_PER_HOUR <= rate <= MOST or None in sizes:
        return None
    seconds, first, last = (size or 0 for size in sizes)
    return Growth(rate, seconds, first, last)


def _amount(row: Row, name: str) -> int | None:
    """Return an amount. None if it is larger than any that a kernel counts to."""
    amount = count(row, name)
    return None if amount is None or amount > MOST else amount


def _treatment(row: Row) -> PodTreatment:
    return PodTreatment(
        text(row, "tier"), text(row, "profile"), row.get("has_exclusive_group") is True
    )


def _largest(known: Resources, row: Row) -> Resources:
    def larger(name: str) -> int | None:
        sizes = (getattr(known, name), _amount(row, name))
        return max((size for size in sizes if size), default=None)

    return Resources(
        larger("cpu_request_millis"),
        larger("cpu_limit_millis"),
        larger("memory_request_bytes"),
        larger("memory_limit_bytes"),
    )
