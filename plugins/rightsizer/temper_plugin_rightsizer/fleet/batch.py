"""Reads the demand of the containers of some namespaces."""

from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from temper_plugin_rightsizer.demand.interval import Counts
from temper_plugin_rightsizer.fleet import queries
from temper_plugin_rightsizer.fleet.answers import Series
from temper_plugin_rightsizer.fleet.demands import (
    Amounts,
    FleetDemand,
    Key,
    Replica,
    latest,
    replica_of,
)
from temper_plugin_rightsizer.fleet.durations import DAY_S
from temper_plugin_rightsizer.fleet.prometheus import Prometheus
from temper_plugin_rightsizer.fleet.queries import Names, Scope
from temper_plugin_rightsizer.fleet.windows import Window
from temper_plugin_rightsizer.fleet.workloads import Owners, controllers
from temper_plugin_rightsizer.options import MOST_DAYS

SINCE_STEPS = 5
"""The precision, in steps, of the time since when threads are known."""


@frozen
class Exporters:
    """The labels in the series of each exporter. None if the server has no series of it.

    ``scrapes`` are the scrapes of a second of each agent, by its label ``instance``.
    """

    usage: Names
    state: Names | None
    threads: Names | None
    scrapes: Mapping[str, float] = field(factory=dict)


@frozen
class Watch:
    """Since when the threads of a container are known, in seconds, and its scrapes of a second."""

    since: float
    scrapes: float


@define
class Batch:
    """The namespaces of *scope* within *window*, of which *most_steps* are read at once."""

    prometheus: Prometheus
    scope: Scope
    window: Window
    exporters: Exporters
    most_steps: int
    owners: Owners = field(factory=Owners, init=False)
    found: dict[Key, FleetDemand] = field(factory=dict, init=False)

    def demands(self) -> Mapping[Key, FleetDemand]:
        """Return the demand of each container of a workload. Raises ValueError for damage."""
        self.owners = self._owners()
        watches = self._watches()
        for begin, end in self.window.pieces(self.most_steps):
            self._add_usage(begin, end, watches)
        if self.found:
            self._add_throttling()
            self._add_kills()
            self._add_memory()
            self._add_resources()
        return self.found

    def _now(self, query: str) -> Sequence[Series]:
        return self.prometheus.at(query, self.window.end).series

    def _of(self, replica: Replica) -> FleetDemand:
        workload = self.owners.workload(replica.namespace, replica.pod)
        return self.found.setdefault((workload, replica.container), FleetDemand())

    def _known(self, query: str, names: Names) -> Mapping[Replica, float]:
        """Return the values of *query* for the containers whose usage is known."""
        values = latest(self._now(query), names)
        return {replica: value for replica, value in values.items() if self._is_known(replica)}

    def _is_known(self, replica: Replica) -> bool:
        workload = self.owners.workload(replica.namespace, replica.pod)
        demand = self.found.get((workload, replica.container))
        return demand is not None and replica.pod in demand.replicas

    def _owners(self) -> Owners:
        state = self.exporters.state
        if state is None:
            return Owners()
        asked = (
            (queries.POD_OWNER, state.pod),
            (queries.REPLICASET_OWNER, "replicaset"),
            (queries.JOB_OWNER, "job_name"),
        )
        rows = (
            (
                self._now(queries.owners(metric, label, self.scope, state, self.window.seconds)),
                label,
            )
            for metric, label in asked
        )
        return Owners(
            *(controllers((each.labels for each in found), state, label) for found, label in rows)
        )

    def _watches(self) -> Mapping[Replica, Watch]:
        """Return how the threads of each container are known. A pod is on one node."""
        names, window = self.exporters.threads, self.window
        if names is None:
            return {}
        step_s = SINCE_STEPS * window.step_s
        query = queries.threads_since(self.scope, names, window.seconds, step_s)
        watches: dict[Replica, Watch] = {}
        for series in self._now(query):
            replica = replica_of(series.labels, names)
            scrapes = self.exporters.scrapes.get(series.labels.get("instance", ""), 0.0)
            for _, since in series.values():
                # A restarted agent may have another address.
                before = watches.get(replica, Watch(since, scrapes))
                watches[replica] = Watch(min(since, before.since), max(scrapes, before.scrapes))
        return watches

    def _add_usage(self, begin: int, end: int, watches: Mapping[Replica, Watch]) -> None:
        step_s, rate_s = self.window.step_s, self.window.rate_s
        hottest = self._hottest(begin, end, watches) if watches else {}
        names = self.exporters.usage
        usage = queries.cpus(self.scope, names, rate_s)
        for series in self.prometheus.over(usage, begin, end, step_s).series:
            replica = replica_of(series.labels, names)
            demand = self._of(replica)
            demand.replicas.add(replica.pod)
            points = [(self.window.step_of(at), used) for at, used in series.values()]
            if replica in watches:
                demand.watched.add(replica.pod)
                first = (watches[replica].since - self.window.at(0)) / step_s
                demand.add_threads(points, hottest.get(replica, {}), first, step_s)
            else:
                demand.add_cpu(points, step_s)

    def _hottest(
        self, begin: int, end: int, watches: Mapping[Replica, Watch]
    ) -> Mapping[Replica, Mapping[int, float]]:
        """Return the CPUs of each container's busiest thread by step, from 0 to 1."""
        names, window = self.exporters.threads, self.window
        if names is None:
            return {}
        query = queries.busy_sums(self.scope, names, window.rate_s)
        found = {}
        for series in self.prometheus.over(query, begin, end, window.step_s).series:
            replica = replica_of(series.labels, names)
            scraped = window.rate_s * watches[replica].scrapes if replica in watches else 0.0
            found[replica] = {
                window.step_of(at): min(total / max(scraped, 1.0), 1.0)
                for at, total in series.values()
            }
        return found

    def _add_throttling(self) -> None:
        for metric, name in (
            (queries.PERIODS, "periods"),
            (queries.THROTTLED_PERIODS, "throttled_periods"),
            (queries.THROTTLED_TIME, "throttled_s"),
        ):
            names = self.exporters.usage
            query = queries.grown(metric, self.scope, names, self.window.seconds)
            for replica, grown in self._known(query, names).items():
                value = grown if name == "throttled_s" else round(grown)
                self._of(replica).demand.counts.merge(Counts(**{name: value}))  # type: ignore[arg-type]  # a count is whole

    def _add_kills(self) -> None:
        """Add OOM kills. cAdvisor may miss the one that ended a container, and its Pod tells it."""
        usage, state, seconds = self.exporters.usage, self.exporters.state, self.window.seconds
        kills = dict(self._known(queries.grown(queries.OOM, self.scope, usage, seconds), usage))
        if state is not None:
            ended = self._known(queries.killed(self.scope, state, seconds), state)
            for replica, restarts in ended.items():
                kills[replica] = max(kills.get(replica, 0), float(round(restarts) > 0))
        for replica, count in kills.items():
            self._of(replica).demand.counts.merge(Counts(oom_kill=round(count)))

    def _add_memory(self) -> None:
        """Add the peaks of the pods in the window, as far back as the server knows them."""
        names = self.exporters.usage
        query = queries.peak(self.scope, names, DAY_S)
        for day in range(MOST_DAYS):
            series = self.prometheus.at(query, self.window.end - day * DAY_S).series
            if not series:
                break
            for replica, size in latest(series, names).items():
                if self._is_known(replica):
                    self._of(replica).demand.counts.merge(Counts(peak_bytes=int(size)))

    def _add_resources(self) -> None:
        names = self.exporters.state
        if names is None:
            return
        amounts = Amounts()
        for metrics, are_limits in (
            ((queries.REQUESTS, queries.SIDECAR_REQUESTS), False),
            ((queries.LIMITS, queries.SIDECAR_LIMITS), True),
        ):
            query = queries.resources(metrics, self.scope, names, self.window.seconds)
            amounts.add(self._now(query), names, are_limits=are_limits)
        for replica in self._known(queries.living(self.scope, names), names):
            self._of(replica).living.add(replica.pod)
        for (workload, container), demand in self.found.items():
            pods = sorted(demand.living or demand.replicas)
            replicas = [Replica(workload.namespace, pod, container) for pod in pods]
            if demand.living or amounts.know(replicas):
                demand.current = amounts.largest(replicas)
