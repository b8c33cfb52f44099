"""The demand of each container of a workload, over all its replicas."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence

from attrs import define, field, frozen

from temper_plugin_rightsizer.advice.advising import judged
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.advice.surroundings import Surroundings
from temper_plugin_rightsizer.demand.growth import Floor, Growth, growth
from temper_plugin_rightsizer.demand.interval import IntervalDemand, cpu_histogram
from temper_plugin_rightsizer.fleet.queries import Names
from temper_plugin_rightsizer.fleet.workloads import Workload
from temper_prometheus.answers import Series

StepValue = tuple[int, float]
"""A step of the window, and a value."""
MILLI = 1000
_NEAR = 1e-6


@frozen
class Replica:
    """A container of one pod."""

    namespace: str
    pod: str
    container: str


@frozen
class ThreadUse:
    """The CPUs of a replica's busiest thread by step, known from the step *since* on.

    An agent leaves threads below a quarter of a CPU out, so a time without a value counts 0.
    """

    hottest: Mapping[int, float]
    since: float


@define
class FleetDemand:
    """The demand of one container of a workload, merged over its replicas.

    Attributes:
        demand: Histograms and counters. Of the threads only the busiest one is known, and only in
            the time of replicas that an agent watches, so its rank covers less time than ``cpu``.
        covered: The steps of the window in which any replica was measured, as bits.
        replicas: The pods that were measured.
        watched: Those whose threads are known.
        living: Those that exist now.
        current: The largest requests and limits of the living replicas. None if not known.
        floors: The least working set of each pod, by the begin of an interval.
        around: What else decides on its requests.

    """

    demand: IntervalDemand = field(factory=IntervalDemand)
    covered: int = 0
    replicas: set[str] = field(factory=set)
    watched: set[str] = field(factory=set)
    living: set[str] = field(factory=set)
    current: Resources | None = None
    floors: dict[str, dict[int, Floor]] = field(factory=dict)
    around: Surroundings = Surroundings()

    def add(
        self,
        points: Iterable[StepValue],
        step_s: int,
        starts: Container[int] = (),
        threads: ThreadUse | None = None,
    ) -> None:
        """Add the CPUs of a replica, and the use of its busiest thread if *threads* know it.

        The steps in *starts* are of its start-up.
        """
        for step, used in points:
            self.covered |= 1 << step
            demand = self.demand
            if step in starts:
                demand = self.demand.startup = self.demand.startup or IntervalDemand()
            demand.cpu.add(used, step_s)
            if threads is not None and step >= threads.since:
                _add_thread(demand, threads.hottest.get(step, 0.0), used, step_s)

    def judged(self) -> IntervalDemand:
        """Return the demand that advice follows from."""
        return judged(self.demand)

    def growths(self) -> Sequence[Growth | None]:
        """Return the growth of the memory of each pod that exists, None if it does not grow."""
        pods = self.living or self.floors.keys()
        return [growth(self.floors[pod]) for pod in sorted(pods) if pod in self.floors]

    def threads_share(self) -> float:
        """Return the share of the measured time in which threads are known."""
        demand = self.judged()
        known = demand.ranks[0].seconds if demand.ranks else 0
        return known / demand.cpu.seconds if known else 0.0


def _add_thread(demand: IntervalDemand, busiest: float, used: float, step_s: int) -> None:
    """Add a step. A thread does not use more than its container.

    Its own mean leaves out the samples in which it was not busy enough to be exported.
    """
    busiest = min(busiest, used)
    if not demand.ranks:
        demand.ranks.append(cpu_histogram())
        demand.rests.append(cpu_histogram())
    demand.ranks[0].add(busiest, step_s)
    demand.rests[0].add(used - busiest, step_s)


Key = tuple[Workload, str]
"""A workload and the name of a container."""


def replica_of(labels: Mapping[str, str], names: Names) -> Replica:
    """Return the container that a series is about."""
    return Replica(
        labels.get(names.namespace, ""), labels.get(names.pod, ""), labels.get(names.container, "")
    )


def latest(series: Sequence[Series], names: Names) -> Mapping[Replica, float]:
    """Return the value of each container in an answer of single values."""
    return {replica_of(each.labels, names): value for each in series for _, value in each.values()}


def millis(cores: float) -> int:
    """Return *cores* in thousandths, rounded up as Kubernetes does."""
    return math.ceil(cores * MILLI - _NEAR)


@define
class Amounts:
    """Requests and limits by container, as kube-state-metrics reports them."""

    cpu_requests: dict[Replica, int] = field(factory=dict)
    cpu_limits: dict[Replica, int] = field(factory=dict)
    memory_requests: dict[Replica, int] = field(factory=dict)
    memory_limits: dict[Replica, int] = field(factory=dict)

    def add(self, series: Iterable[Series], names: Names, *, are_limits: bool) -> None:
        """Add an answer about requests, or about limits."""
        cpu = self.cpu_limits if are_limits else self.cpu_requests
        memory = self.memory_limits if are_limits else self.memory_requests
        for each in series:
            replica = replica_of(each.labels, names)
            for _, value in each.values():
                if each.labels.get("resource") == "cpu":
                    cpu[replica] = millis(value)
                else:
                    memory[replica] = int(value)

    def know(self, replicas: Sequence[Replica]) -> bool:
        """Return whether any amount of *replicas* is known."""
        return self.largest(replicas) != Resources()

    def largest(self, replicas: Sequence[Replica]) -> Resources:
        """Return the largest of each amount among *replicas*."""
        return Resources(
            _largest(self.cpu_requests, replicas),
            _largest(self.cpu_limits, replicas),
            _largest(self.memory_requests, replicas),
            _largest(self.memory_limits, replicas),
        )


def _largest(amounts: Mapping[Replica, int], replicas: Iterable[Replica]) -> int | None:
    return max((amounts[each] for each in replicas if amounts.get(each)), default=None)
