"""The state of a cluster as of the last watch. It is kept while the API server is away."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from attrs import define, field, frozen

from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.extender.places import NodeKinds, Place, TwinReport
from temper_plugin_power.operating.twin import Hardware
from temper_plugin_power.placing.rejecting import LABEL
from temper_plugin_power.placing.scoring import mean_use
from temper_plugin_power.placing.subjects import EARLY_S
from temper_plugin_power.workloads.owners import Workload

Key = TypeVar("Key")
Value = TypeVar("Value")


@frozen
class Eviction:
    """The last eviction of a pod of some owner."""

    node_class: str
    at: float
    """Seconds since the epoch."""


@frozen
class Owner:
    """An owner of pods."""

    namespace: str
    kind: str
    name: str


@define(eq=False)
class Cluster:
    """Nodes, profiles and evictions. All calls come from one thread. A value of None removes."""

    places: dict[str, Place] = field(factory=dict, init=False)
    profiles: dict[Workload, PowerProfile] = field(factory=dict, init=False)
    rejecting: dict[str, str] = field(factory=dict, init=False)
    """The nodes that take no performance pods, fresh twin or not, with the cause."""
    _doubted: dict[str, Place] = field(factory=dict, init=False)
    """The nodes that take performance pods only while their twin is fresh."""
    _evictions: dict[Owner, Eviction] = field(factory=dict, init=False)
    _performing: dict[str, Place] = field(factory=dict, init=False)
    _kinds: NodeKinds = field(factory=NodeKinds, init=False)

    def put_twin(self, node: str, report: TwinReport | None) -> None:
        """Record the twin of *node*."""
        place = self._place(node)
        place.report = report
        self._changed(place)

    def put_hardware(self, node: str, hardware: Hardware | None) -> None:
        """Record the hardware of *node*."""
        place = self._place(node)
        place.hardware = hardware
        self._changed(place)

    def put_label(self, node: str, label: str | None) -> None:
        """Record the label ``power-profile`` of *node*, empty if it has none."""
        place = self._place(node)
        place.label = label
        self._changed(place)

    def put_profile(self, workload: Workload, profile: PowerProfile | None) -> None:
        """Record the profile of *workload*."""
        _put(self.profiles, workload, profile)

    def put_eviction(self, owner: Owner, eviction: Eviction | None) -> None:
        """Record the last eviction of a pod of *owner*."""
        _put(self._evictions, owner, eviction)

    def evicted_from(self, owner: Owner, now: float, within_s: float) -> str | None:
        """Return the class of the node that a pod of *owner* was evicted from *within_s*."""
        eviction = self._evictions.get(owner)
        is_recent = eviction is not None and -EARLY_S <= now - eviction.at <= within_s
        return eviction.node_class if eviction is not None and is_recent else None

    def pressure(self, oldest: float, newest: float) -> float:
        """Return how full performance nodes are, 0 to 100, by twins updated between these times."""
        return mean_use(
            place.report.twin.headroom
            for place in self._performing.values()
            if place.report is not None and oldest <= place.told_at <= newest
        )

    def rejecting_between(self, oldest: float, newest: float) -> Mapping[str, str]:
        """Return the nodes that take no performance pods, with the cause.

        A twin is fresh if it was updated between these times.
        """
        stale = [
            name for name, place in self._doubted.items() if not place.is_fresh(oldest, newest)
        ]
        return {**self.rejecting, **dict.fromkeys(stale, LABEL)} if stale else self.rejecting

    def stale(self, oldest: float, newest: float) -> Iterable[str]:
        """Return the nodes whose twin was not updated between these times."""
        return [
            name
            for name, place in self.places.items()
            if place.report is not None and not place.is_fresh(oldest, newest)
        ]

    def _place(self, node: str) -> Place:
        place = self.places.get(node)
        if place is None:
            place = self.places[node] = Place(node)
        return place

    def _changed(self, place: Place) -> None:
        place.reckon(self._kinds)
        cause = place.rejection_cause(is_fresh=True)
        is_doubted = cause != place.rejection_cause(is_fresh=False)
        _put(self.rejecting, place.name, cause)
        _put(self._doubted, place.name, place if is_doubted else None)
        is_performing = place.node_class == "performance"
        _put(self._performing, place.name, place if is_performing else None)
        if place.is_unknown:
            del self.places[place.name]


def _put(table: dict[Key, Value], key: Key, value: Value | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
