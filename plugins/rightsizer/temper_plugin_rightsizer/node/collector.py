"""Accumulates the demand of the node's containers, and hands intervals to the history."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import define, evolve, field

from temper_core import LayerPlan, NodeLookup, Snapshot, rfc3339
from temper_plugin_rightsizer.demand.day_before import hours_to_come
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey, WindowDemand, window_demands
from temper_plugin_rightsizer.node.cgroup_counters import CgroupCounters, CgroupFiles
from temper_plugin_rightsizer.node.containers import (
    NO_TREATMENT,
    NodeContainer,
    containers_of,
    names_by_uid,
    treatment_of,
)
from temper_plugin_rightsizer.node.realized import MILLIS, freed_millis, reclaimed
from temper_plugin_rightsizer.node.starts import PROC, Starts
from temper_plugin_rightsizer.node.steady_clock import SteadyClock
from temper_plugin_rightsizer.store.history import HOUR_S, Interval
from temper_plugin_rightsizer.store.keeper import Keeper, Known

INTERVAL_S = 300
COUNTERS_S = 60.0
STARTUP_S = 300
MOST_WINDOW_S = 900
"""A longer gap, as after a suspended machine, counts as this."""


@define
class Collector:
    """Turns snapshots into intervals, which *keeper* keeps. *lookup* knows the node's pods.

    The first *startup_s* seconds of a container are kept apart, by the minute. Old intervals are
    merged and forgotten only after an hour in which the wall clock did not jump: a clock that is
    wrong for a moment would take the whole history for old, or for one of the future.
    """

    keeper: Keeper
    lookup: NodeLookup
    files: CgroupFiles = CgroupFiles()
    startup_s: int = STARTUP_S
    proc: Path = PROC
    stopped: str = field(default="", init=False)
    latest: Mapping[ContainerKey, WindowDemand] = field(factory=dict, init=False)
    _current: dict[ContainerKey, IntervalDemand] = field(factory=dict, init=False)
    _minute: dict[ContainerKey, IntervalDemand] = field(factory=dict, init=False)
    _starting: frozenset[ContainerKey] = field(default=frozenset(), init=False)
    _began_at: int = field(default=0, init=False)
    _counted_at: float | None = field(default=None, init=False)
    _compacted_s: float = field(default=float("-inf"), init=False)
    _counters: dict[ContainerKey, CgroupCounters] = field(factory=dict, init=False)
    _told_at: float | None = field(default=None, init=False)
    _clock: SteadyClock = field(factory=SteadyClock, init=False)
    _starts: Starts = field(init=False)
    _plan: LayerPlan | None = field(default=None, init=False)
    _containers: dict[ContainerKey, NodeContainer] = field(factory=dict, init=False)
    _requests: dict[str, int] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        """Share the files with the reader of the age of containers."""
        self._starts = Starts(self.files, self.proc)

    def tell(self, snapshot: Snapshot) -> None:
        """Add the window of *snapshot*, and keep the interval if it is over."""
        self._clock.note(snapshot.at, snapshot.monotonic_s)
        begins_at = int(snapshot.at) // INTERVAL_S * INTERVAL_S
        if begins_at != self._began_at:
            if self._counted_at is not None:
                self._count(snapshot.monotonic_s)
            self._keep()
            self._began_at = begins_at
            self._maintain(snapshot.monotonic_s)
        seconds = max(min(round(snapshot.window_s), MOST_WINDOW_S), 1)
        self._look_for_pods(len(snapshot.machine.cpus) * MILLIS)
        if snapshot.observing.knows_threads:
            self.latest = window_demands(snapshot, names_by_uid(self._containers.values()))
            for key, demand in self.latest.items():
                self._minute.setdefault(key, IntervalDemand()).add(demand, seconds)
            self._realize(snapshot, seconds)
        if self._counted_at is None or snapshot.monotonic_s - self._counted_at >= COUNTERS_S:
            self._count(snapshot.monotonic_s)
        self._told_at = snapshot.at

    def demands(self, window_s: int, now: float) -> Mapping[ContainerKey, IntervalDemand]:
        """Return the demands of ``look_back``."""
        return self.look_back(window_s, now).demands

    def look_back(self, window_s: int, now: float) -> Known:
        """Return the demand of each container of the node's pods in the last *window_s* seconds.

        The interval that is not over counts. Raises MachineError if the history cannot be read.
        """
        uids = {key.uid for key in self._containers}
        earlier = hours_to_come(now, window_s)
        known = self.keeper.read(int(now) - window_s, uids, earlier)
        demands = dict(known.demands)
        current: dict[ContainerKey, IntervalDemand] = {}
        for key, demand in (*self._current.items(), *self._apart(self._minute)):
            current.setdefault(key, IntervalDemand()).merge(demand)
        for key, demand in current.items():
            demand.note_floor(self._began_at)
            demands.setdefault(key, IntervalDemand()).merge(demand)
        return Known(demands, known.unread)

    def container(self, key: ContainerKey) -> NodeContainer | None:
        """Return the container of that key, None if it is not on the node any more."""
        return self._containers.get(key)

    def fill(self, seconds: int, intervals: Iterable[Interval]) -> int:
        """Keep *intervals* of *seconds* from before the node's own. Return how many were.

        Those that end later than the present interval begins are left out. Raises MachineError if
        the history cannot be written.
        """
        over = (each for each in intervals if each[1] + seconds <= self._began_at)
        return self.keeper.fill(seconds, over)

    @property
    def known(self) -> Iterable[ContainerKey]:
        """The containers of the node's pods."""
        return self._containers.keys()

    def stop(self) -> None:
        """Take the last window for the last one that is learned."""
        since = "the start" if self._told_at is None else rfc3339(self._told_at)
        self.stopped = f"nothing is learned since {since}; restart the agent"

    def close(self) -> None:
        """Keep the interval that is not over."""
        self._settle()
        self._keep()
        self.keeper.close()

    def _maintain(self, now_s: float) -> None:
        """Have the interval written, and the history kept small an hour after the last time."""
        is_due = self._clock.steady_s(now_s) >= HOUR_S and now_s - self._compacted_s >= HOUR_S
        if self.keeper.turn(compacts=is_due) and is_due:
            self._compacted_s = now_s

    def _keep(self) -> None:
        demands, self._current = self._current, {}
        if demands and self._began_at:
            self.keeper.add(self._began_at, INTERVAL_S, demands)

    def _realize(self, snapshot: Snapshot, seconds: int) -> None:
        """Add what was realized in a window of *seconds*, to the containers that it is due to."""
        used: dict[str, float] = {}
        for key, demand in self.latest.items():
            used[key.uid] = used.get(key.uid, 0.0) + demand.total
        served = reclaimed(snapshot.pods, self._requests, len(snapshot.machine.cpus))
        for key, demand in self.latest.items():
            counts = self._minute[key].counts
            if key.uid in served and used[key.uid]:
                share = demand.total / used[key.uid]
                counts.reclaimed_core_s += served[key.uid] * share * seconds
            container = self._containers.get(key)
            if container is not None and container.freed_millis:
                counts.freed_core_s += container.freed_millis / MILLIS * seconds

    def _look_for_pods(self, most_millis: int) -> None:
        plan = self.lookup.plan
        if plan is self._plan:
            return
        self._plan = plan
        treatments = {
            each.pod.uid: treatment_of(each) for each in (plan.assignments if plan else ())
        }
        self._containers, self._requests = {}, {}
        for pod in self.lookup.pods():
            freed = freed_millis(pod, most_millis)
            treatment = treatments.get(pod.uid, NO_TREATMENT)
            for each in containers_of(pod, self.files, treatment):
                lowered = freed.get(each.key.container, 0)
                self._containers[each.key] = evolve(each, freed_millis=lowered) if lowered else each
            self._requests[pod.uid] = pod.cpu_request_millis
        self._counters = {
            key: counters for key, counters in self._counters.items() if key in self._containers
        }
        self._starts.keep(self._containers.keys())

    def _count(self, now_s: float) -> None:
        """Read the counters of all containers, and settle the minute that ends at *now_s*."""
        elapsed = 1.0 if self._counted_at is None else max(now_s - self._counted_at, 1.0)
        self._counted_at = now_s
        starting = set()
        for key, container in self._containers.items():
            for path in container.cgroups[:1]:
                counters = self.files.read(path)
                demand = self._minute.setdefault(key, IntervalDemand())
                demand.counts.merge(counters.since(self._counters.get(key), elapsed))
                if counters.working_set_bytes >= 0:
                    demand.memory.add(counters.working_set_bytes, round(elapsed))
                self._counters[key] = counters
            age_s = self._starts.age_s(container) if self.startup_s else None
            if age_s is not None and age_s < self.startup_s + elapsed:
                starting.add(key)
        self._starting = frozenset(starting)
        self._settle()

    def _settle(self) -> None:
        """Add the minute to the interval."""
        minute, self._minute = self._minute, {}
        for key, demand in self._apart(minute):
            self._current.setdefault(key, IntervalDemand()).merge(demand)

    def _apart(
        self, minute: Mapping[ContainerKey, IntervalDemand]
    ) -> Iterator[tuple[ContainerKey, IntervalDemand]]:
        """Yield the demand of a minute, that of starting containers as their start-up."""
        for key, demand in minute.items():
            yield key, IntervalDemand(startup=demand) if key in self._starting else demand
