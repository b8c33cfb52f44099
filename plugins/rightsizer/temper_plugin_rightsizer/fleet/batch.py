"""Reads the demand of the containers of some namespaces."""

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen

from temper_plugin_rightsizer.advice.quotas import Quotas
from temper_plugin_rightsizer.advice.surroundings import Bounds
from temper_plugin_rightsizer.demand.growth import Floor
from temper_plugin_rightsizer.demand.interval import Counts
from temper_plugin_rightsizer.fleet import queries
from temper_plugin_rightsizer.fleet.demands import (
    Amounts,
    FleetDemand,
    Key,
    Replica,
    StepValue,
    ThreadUse,
    latest,
    replica_of,
)
from temper_plugin_rightsizer.fleet.queries import Names, Scope
from temper_plugin_rightsizer.fleet.starts import Span, Starts
from temper_plugin_rightsizer.fleet.surroundings import FleetSurroundings
from temper_plugin_rightsizer.fleet.windows import Window
from temper_plugin_rightsizer.fleet.workloads import Owners, controllers
from temper_plugin_rightsizer.options import MOST_DAYS
from temper_prometheus.answers import Series
from temper_prometheus.client import Prometheus
from temper_prometheus.durations import DAY_S

SINCE_STEPS = 5
"""The precision, in steps, of the time since when threads are known."""
MEMORY_PARTS = 72
FLOOR_PARTS = 24
"""Parts of the window whose peak or least working set is asked for."""


@frozen
class Exporters:
    """The labels in the series of each exporter. None if the server has no series of it.

    ``scrapes`` are the scrapes of a second of each agent that was scraped lately, by its label
    ``instance``. ``knows_starts`` is whether the time of containers' starts is known.
    """

    usage: Names
    state: Names | None
    threads: Names | None
    scrapes: Mapping[str, float] = field(factory=dict)
    knows_starts: bool = False

    def scrapes_of(self, instance: str) -> float:
        """Return the scrapes of a second of an agent.

        An agent that has another address by now, or whose node is gone, was scraped like the
        others. 0 if no agent was scraped lately.
        """
        return self.scrapes.get(instance, max(self.scrapes.values(), default=0.0))


@frozen
class Watch:
    """Since when the threads of a container are known, in seconds, and its scrapes of a second."""

    since: float
    scrapes: float


@frozen
class Usage:
    """CPUs of a replica by step, and those of its busiest thread if agents know it."""

    replica: Replica
    points: Sequence[StepValue]
    threads: ThreadUse | None


@define
class Batch:
    """The namespaces of *scope* within *window*, of which *most_steps* are read at once.

    The start-ups of containers are kept apart, as *starts* gives them. *quotas* and *pod_bounds*
    are added to.
    """

    prometheus: Prometheus
    scope: Scope
    window: Window
    exporters: Exporters
    most_steps: int
    starts: Starts
    quotas: Quotas
    pod_bounds: dict[str, Bounds]
    owners: Owners = field(factory=Owners, init=False)
    found: dict[Key, FleetDemand] = field(factory=dict, init=False)

    def demands(self) -> Mapping[Key, FleetDemand]:
        """Return the demand of each container of a workload. Raises ValueError for damage."""
        if self.cpu_demands():
            self._add_day_before()
            self._add_throttling()
            self._add_kills()
            steady = self._memory_of_started()
            self._add_memory(steady)
            self._add_resources()
            self._add_floors()
            self._add_surroundings()
        return self.found

    def cpu_demands(self) -> Mapping[Key, FleetDemand]:
        """Return the CPU demand only. Raises ValueError for damage."""
        for usage in self.usages():
            self._add(usage)
        return self.found

    def usages(self) -> Iterator[Usage]:
        """Yield the usage of each replica, some steps at a time. Raises ValueError for damage."""
        self.owners = self._owners()
        watches = self._watches()
        for begin, end in self.window.pieces(self.most_steps):
            self._add_starts(begin, end)
            yield from self._usages(begin, end, watches)

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
            scrapes = self.exporters.scrapes_of(series.labels.get("instance", ""))
            for _, since in series.values():
                # A restarted agent may have another address.
                before = watches.get(replica, Watch(since, scrapes))
                watches[replica] = Watch(min(since, before.since), max(scrapes, before.scrapes))
        return watches

    def _usages(self, begin: int, end: int, watches: Mapping[Replica, Watch]) -> Iterator[Usage]:
        names, window = self.exporters.usage, self.window
        hottest = self._hottest(begin, end, watches) if watches else {}
        query = queries.cpus(self.scope, names, window.rate_s)
        for series in self.prometheus.over(query, begin, end, window.step_s).series:
            replica = replica_of(series.labels, names)
            points = [(window.step_of(at), used) for at, used in series.values()]
            threads = None
            if replica in watches:
                first = (watches[replica].since - window.at(0)) / window.step_s
                threads = ThreadUse(hottest.get(replica, {}), first)
            yield Usage(replica, points, threads)

    def _add(self, usage: Usage) -> None:
        replica = usage.replica
        demand = self._of(replica)
        demand.replicas.add(replica.pod)
        if usage.threads is not None:
            demand.watched.add(replica.pod)
        demand.add(usage.points, self.window.step_s, self.starts.steps(replica), usage.threads)

    def _add_day_before(self) -> None:
        """Add the demand of the containers that followed this time of day, a day ago."""
        window = self.window.day_before()
        if window is None:
            return
        starts = Starts(window, self.starts.startup_s)
        earlier = evolve(self, window=window, starts=starts)
        for key, found in earlier.cpu_demands().items():
            if key in self.found:
                self.found[key].demand.add_day_before(found.demand)

    def _add_starts(self, begin: int, end: int) -> None:
        """Note the starts of containers since *begin*, and those that matter then."""
        startup_s = self.starts.startup_s
        if not (startup_s and self.exporters.knows_starts):
            return
        names, step_s = self.exporters.usage, max(startup_s, self.window.step_s)
        since = begin - startup_s - self.window.rate_s
        query = queries.started(self.scope, names, step_s, since)
        first = end - (end - begin) // step_s * step_s
        for series in self.prometheus.over(query, first, end, step_s).series:
            moments = (value for _, value in series.values())
            self.starts.note(replica_of(series.labels, names), moments)

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
        """Add OOM kills. cAdvisor may miss the one that ended a container, and its Pod has it."""
        usage, state, seconds = self.exporters.usage, self.exporters.state, self.window.seconds
        kills = dict(self._known(queries.grown(queries.OOM, self.scope, usage, seconds), usage))
        if state is not None:
            ended = self._known(queries.killed(self.scope, state, seconds), state)
            for replica, restarts in ended.items():
                kills[replica] = max(kills.get(replica, 0), float(round(restarts) > 0))
        for replica, count in kills.items():
            self._of(replica).demand.counts.merge(Counts(oom_kill=round(count)))

    def _memory_of_started(self) -> Mapping[Replica, int]:
        """Return the peak of memory after the start-up of each container that has started.

        The use of the start-up is noted as such. A container without any other time is left out.
        """
        if not self.starts:
            return {}
        names, window = self.exporters.usage, self.window
        step_s = max(self.starts.startup_s, window.seconds // MEMORY_PARTS)
        since = window.at(0) - self.starts.startup_s
        started = queries.started(self.scope, names, window.seconds, since)
        query = f"{queries.peak(self.scope, names, step_s)} and {started}"
        steady: dict[Replica, int] = {}
        for series in self.prometheus.over(query, window.at(0), window.end, step_s).series:
            replica = replica_of(series.labels, names)
            if not self._is_known(replica):
                continue
            for at, size in series.values():
                if not self.starts.touch(replica, Span(at - step_s, at)):
                    steady[replica] = max(steady.get(replica, 0), int(size))
                elif (startup := self._of(replica).demand.startup) is not None:
                    startup.counts.merge(Counts(peak_bytes=int(size)))
        return steady

    def _add_floors(self) -> None:
        """Add the least working set of each pod in parts of the window."""
        names, window = self.exporters.usage, self.window
        part_s = max(window.seconds // FLOOR_PARTS, window.step_s)
        query = queries.least_memory(self.scope, names, part_s)
        first = window.end - (FLOOR_PARTS - 1) * part_s
        for series in self.prometheus.over(query, first, window.end, part_s).series:
            replica = replica_of(series.labels, names)
            if self._is_known(replica):
                self._of(replica).floors[replica.pod] = {
                    int(at) - part_s: Floor(
                        int(size), self.starts.touch(replica, Span(at - part_s, at))
                    )
                    for at, size in series.values()
                }

    def _add_memory(self, steady: Mapping[Replica, int]) -> None:
        """Add the peaks of the pods in the window, as far back as the server knows them.

        In the window *steady* has the peaks of some, without their start-ups.
        """
        names, begin = self.exporters.usage, self.window.end - self.window.seconds
        for end, range_s in self._days():
            series = self.prometheus.at(queries.peak(self.scope, names, range_s), end).series
            if not series:
                break
            for replica, size in latest(series, names).items():
                if self._is_known(replica):
                    own = steady.get(replica, int(size)) if end > begin else int(size)
                    self._of(replica).demand.counts.merge(Counts(peak_bytes=own))

    def _days(self) -> Iterator[tuple[int, int]]:
        """Yield the end and length of pieces of the last days. None is partly in the window."""
        end, begin = self.window.end, self.window.end - self.window.seconds
        oldest = self.window.end - MOST_DAYS * DAY_S
        while end > oldest:
            range_s = min(DAY_S, end - (begin if end > begin else oldest))
            yield end, range_s
            end -= range_s

    def _add_surroundings(self) -> None:
        state = self.exporters.state
        if state is None:
            return
        known = FleetSurroundings(self.owners, state, self.quotas, self.pod_bounds)
        known.read(self._now, self.scope)
        for (workload, container), found in self.found.items():
            found.around = known.of(workload, container)

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
