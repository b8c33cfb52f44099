"""The demand that a replay reads from a Prometheus."""

from collections.abc import Callable, Iterator

from attrs import define, field

from temper_plugin_rightsizer.backtest.samples import STEP_S, Name, Place, demand_at
from temper_plugin_rightsizer.demand.interval import Counts, IntervalDemand
from temper_plugin_rightsizer.demand.window import window_of
from temper_plugin_rightsizer.fleet import queries
from temper_plugin_rightsizer.fleet.batch import Batch, Usage
from temper_plugin_rightsizer.fleet.demands import Replica, replica_of
from temper_plugin_rightsizer.fleet.queries import Names
from temper_plugin_rightsizer.fleet.reading import Fleet

HOTTEST = "hottest"
"""The name of the one thread that the series of an agent know."""


def demands_of_fleet(
    fleet: Fleet, name_of: Callable[[Replica], Name] | None = None
) -> dict[Place, IntervalDemand]:
    """Return the steps of each container of *fleet*, as a node's history has them.

    *name_of* names a container. Without it the name is that of its workload. A start-up counts like
    any other time. Raises InputError or MachineError for what the server answers.
    """
    demands: dict[Place, IntervalDemand] = {}
    for batch in fleet.batches(fleet.exporters()):
        with fleet.judged():
            _Reading(batch, demands, name_of).read()
    return demands


@define
class _Reading:
    batch: Batch
    demands: dict[Place, IntervalDemand]
    name_of: Callable[[Replica], Name] | None = field()

    def read(self) -> None:
        for usage in self.batch.usages():
            self._add_usage(usage)
        self._add_memory()
        scope, names = self.batch.scope, self.batch.exporters.usage
        throttled = queries.grown(queries.THROTTLED_TIME, scope, names, STEP_S)
        for replica, at, seconds in self._hourly(throttled, names):
            self._of(replica, at).counts.merge(Counts(throttled_s=seconds))
        for replica, at, kills in self._hourly(
            queries.grown(queries.OOM, scope, names, STEP_S), names
        ):
            self._of(replica, at).counts.merge(Counts(oom_kill=round(kills)))

    def _of(self, replica: Replica, at: float) -> IntervalDemand:
        return demand_at(self.demands, self._name(replica), replica.pod, int(at))

    def _name(self, replica: Replica) -> Name:
        if self.name_of is not None:
            return self.name_of(replica)
        workload = self.batch.owners.workload(replica.namespace, replica.pod)
        return f"{workload.namespace}/{workload.owner}/{replica.container}"

    def _add_usage(self, usage: Usage) -> None:
        """Add each step to the hour in which it began."""
        window, threads = self.batch.window, usage.threads
        for step, used in usage.points:
            demand = self._of(usage.replica, window.at(step) - window.step_s)
            if threads is not None and step >= threads.since:
                hottest = ((HOTTEST, min(threads.hottest.get(step, 0.0), used)),)
                demand.add(window_of(used, hottest), window.step_s)
            else:
                demand.cpu.add(used, window.step_s)
                demand.counts.unwatched_s += window.step_s

    def _add_memory(self) -> None:
        """Add the peak of the working set in each step."""
        window, names = self.batch.window, self.batch.exporters.usage
        query = queries.peak(self.batch.scope, names, window.step_s)
        for begin, end in window.pieces(self.batch.most_steps):
            for series in self.batch.prometheus.over(query, begin, end, window.step_s).series:
                replica = replica_of(series.labels, names)
                for at, size in series.values():
                    demand = self._of(replica, at - window.step_s)
                    demand.memory.add(int(size), window.step_s)
                    demand.counts.merge(Counts(peak_bytes=int(size)))

    def _hourly(self, query: str, names: Names) -> Iterator[tuple[Replica, int, float]]:
        """Yield replica, begin of the hour and value of *query*, which looks back by an hour."""
        window = self.batch.window
        first = (window.at(0) // STEP_S + 1) * STEP_S
        if first > window.end:
            return
        for series in self.batch.prometheus.over(query, first, window.end, STEP_S).series:
            replica = replica_of(series.labels, names)
            for at, value in series.values():
                if value > 0 and self._is_known(replica, int(at) - STEP_S):
                    yield replica, int(at) - STEP_S, value

    def _is_known(self, replica: Replica, at: int) -> bool:
        return (self._name(replica), replica.pod, at) in self.demands
