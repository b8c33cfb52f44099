"""Accumulates the demand of the node's containers, and hands intervals to the history."""

from collections.abc import Callable, Mapping

from attrs import define, field

from temper_core import LayerPlan, MachineError, NodeLookup, Snapshot
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey, WindowDemand, window_demands
from temper_plugin_rightsizer.node.cgroup_counters import CgroupCounters, CgroupFiles
from temper_plugin_rightsizer.node.containers import (
    NodeContainer,
    containers_of,
    names_by_uid,
)
from temper_plugin_rightsizer.store.history import HOUR_S, History

INTERVAL_S = 300
COUNTERS_S = 60.0
MOST_WINDOW_S = 900
"""A longer gap, as after a suspended machine, counts as this."""


@define
class Collector:
    """Turns snapshots into intervals of the *history*. *lookup* knows the node's pods."""

    history: History
    lookup: NodeLookup
    files: CgroupFiles = CgroupFiles()
    defect: str = field(default="", init=False)
    latest: Mapping[ContainerKey, WindowDemand] = field(factory=dict, init=False)
    _current: dict[ContainerKey, IntervalDemand] = field(factory=dict, init=False)
    _began_at: int = field(default=0, init=False)
    _counted_at: float = field(default=0.0, init=False)
    _compacted_at: int = field(default=0, init=False)
    _counters: dict[ContainerKey, CgroupCounters] = field(factory=dict, init=False)
    _plan: LayerPlan | None = field(default=None, init=False)
    _containers: dict[ContainerKey, NodeContainer] = field(factory=dict, init=False)

    def tell(self, snapshot: Snapshot) -> None:
        """Add the window of *snapshot*, and keep the interval if it is over."""
        at = int(snapshot.at)
        self._close_interval(at // INTERVAL_S * INTERVAL_S)
        seconds = max(min(round(snapshot.window_s), MOST_WINDOW_S), 1)
        self._look_for_pods()
        if snapshot.observing.knows_threads:
            self.latest = window_demands(snapshot, names_by_uid(self._containers.values()))
            for key, demand in self.latest.items():
                self._current.setdefault(key, IntervalDemand()).add(demand, seconds)
        elapsed = snapshot.monotonic_s - self._counted_at
        if elapsed >= COUNTERS_S:
            self._count(round(elapsed) if self._counted_at else 1)
            self._counted_at = snapshot.monotonic_s

    def demands(self, window_s: int, now: float) -> Mapping[ContainerKey, IntervalDemand]:
        """Return the demand of each container of the node's pods in the last *window_s* seconds.

        The interval that is not over counts. Raises MachineError if the history cannot be read.
        """
        uids = {key.uid for key in self._containers}
        demands = dict(self.history.read(int(now) - window_s, uids))
        for key, demand in self._current.items():
            demands.setdefault(key, IntervalDemand()).merge(demand)
        return demands

    def container(self, key: ContainerKey) -> NodeContainer | None:
        """Return the container of that key, None if it is not on the node any more."""
        return self._containers.get(key)

    def close(self) -> None:
        """Keep the interval that is not over."""
        self._keep()

    def _close_interval(self, begins_at: int) -> None:
        if begins_at == self._began_at:
            return
        self._keep()
        self._began_at = begins_at
        if begins_at - self._compacted_at >= HOUR_S or begins_at < self._compacted_at:
            self._compacted_at = begins_at
            self._guard(self.history.compact)

    def _keep(self) -> None:
        demands, self._current = self._current, {}
        if demands and self._began_at:
            self._guard(lambda: self.history.add(self._began_at, INTERVAL_S, demands))

    def _guard(self, use: Callable[[], None]) -> None:
        """Go on without the history, as on a full disk. The defect is published."""
        try:
            use()
        except MachineError as error:
            self.defect = str(error)
        else:
            self.defect = self.history.defect

    def _look_for_pods(self) -> None:
        plan = self.lookup.plan
        if plan is self._plan:
            return
        self._plan = plan
        pods = self.lookup.pods()
        containers = [container for pod in pods for container in containers_of(pod, self.files)]
        self._containers = {container.key: container for container in containers}
        self._counters = {
            key: counters for key, counters in self._counters.items() if key in self._containers
        }

    def _count(self, seconds: int) -> None:
        """Read the counters of all containers. *seconds* have passed since the last time."""
        for key, container in self._containers.items():
            for path in container.cgroups[:1]:
                counters = self.files.read(path)
                demand = self._current.setdefault(key, IntervalDemand())
                demand.counts.merge(counters.since(self._counters.get(key)))
                if counters.working_set_bytes >= 0:
                    demand.memory.add(counters.working_set_bytes, seconds)
                self._counters[key] = counters
