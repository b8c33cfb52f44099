"""Reads the demand of a fleet, some namespaces at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from attrs import define, field

from temper_core import InputError
from temper_plugin_rightsizer.advice.quotas import Quotas
from temper_plugin_rightsizer.advice.surroundings import Bounds
from temper_plugin_rightsizer.fleet import queries
from temper_plugin_rightsizer.fleet.batch import Batch, Exporters
from temper_plugin_rightsizer.fleet.demands import FleetDemand, Key
from temper_plugin_rightsizer.fleet.queries import EXPORTED, OLD_KUBELET, USUAL, Names, Scope
from temper_plugin_rightsizer.fleet.starts import Starts
from temper_plugin_rightsizer.fleet.windows import Window
from temper_prometheus.answers import Series
from temper_prometheus.client import Prometheus
from temper_prometheus.durations import HOUR_S, as_duration

STARTUP_S = 300
MOST_CONTAINERS = 1000
"""Containers whose histograms are held at once, unless one namespace has more."""
MOST_SAMPLES = 200_000
"""Samples of one answer, if a single step has no more: some 8 MB of JSON."""
MOST_POINTS = 10_000
"""Of one series. A Prometheus refuses more than 11,000."""


@define
class Fleet:
    """Reads what *prometheus* knows of the containers in *scope* within *window*.

    The first *startup_s* seconds of a container are kept apart. *most_containers* and
    *most_samples* bound what is held at once.
    """

    prometheus: Prometheus
    scope: Scope
    window: Window
    most_containers: int = MOST_CONTAINERS
    most_samples: int = MOST_SAMPLES
    startup_s: int = STARTUP_S
    quotas: Quotas = field(factory=Quotas)
    pod_bounds: dict[str, Bounds] = field(factory=dict)

    def exporters(self) -> Exporters:
        """Return the labels of each exporter. Raises InputError without usage of containers."""
        usage = self._first((USUAL, OLD_KUBELET), self._usage)
        if usage is None:
            raise InputError(
                f"the server has no {queries.CPU} of a container in this scope; it comes from "
                "the kubelet's /metrics/cadvisor"
            )
        threads = self._first((EXPORTED, USUAL), self._threads)
        return Exporters(
            usage=usage,
            state=self._first((EXPORTED, USUAL), self._state),
            threads=threads,
            scrapes=self._scrapes(threads) if threads else {},
            knows_starts=self._first((usage,), self._starts) is not None,
        )

    def clusters(self, exporters: Exporters) -> int:
        """Return how many values the label ``cluster`` has."""
        return len(self._now(f"count by (cluster) ({self._usage(exporters.usage)})"))

    def demands(self, exporters: Exporters) -> Iterator[Mapping[Key, FleetDemand]]:
        """Yield the demand of all containers of some namespaces.

        Raises InputError or MachineError for what the server answers.
        """
        for batch in self.batches(exporters):
            with self.judged():
                yield batch.demands()

    def batches(self, exporters: Exporters) -> Iterator[Batch]:
        """Yield batches of namespaces, which are read one after the other."""
        for namespaces, size in self._sizes(exporters.usage):
            steps = min(max(self.most_samples // size, 1), MOST_POINTS)
            yield Batch(
                self.prometheus,
                self.scope.of(namespaces),
                self.window,
                exporters,
                steps,
                Starts(self.window, self.startup_s),
                self.quotas,
                self.pod_bounds,
            )

    def _sizes(self, names: Names) -> Iterator[tuple[Sequence[str], int]]:
        """Yield namespaces with the number of their containers, at least 1."""
        seen = (
            f"last_over_time({self.scope.containers(queries.CPU, names)}[{self.window.seconds}s])"
        )
        sizes = self._now(f"count by ({names.namespace}) (count by ({names.by}) ({seen}))")
        batch: list[str] = []
        total = 0
        with self.judged():
            counts = [
                (each.labels.get(names.namespace, ""), max(int(count), 1))
                for each in sizes
                for _, count in each.values()
            ]
        for namespace, count in sorted(counts):
            if batch and total + count > self.most_containers:
                yield batch, total
                batch, total = [], 0
            batch.append(namespace)
            total += count
        if batch:
            yield batch, total

    def _scrapes(self, names: Names) -> Mapping[str, float]:
        """Return the scrapes of a second of each agent, by all containers of its node."""
        range_s = min(self.window.seconds, HOUR_S)
        rows = self._now(queries.scrapes(self.scope.of(()), names, range_s))
        with self.judged():
            return {
                row.labels.get("instance", ""): count / queries.COUNTED_S
                for row in rows
                for _, count in row.values()
            }

    def _usage(self, names: Names) -> str:
        return self.scope.containers(queries.CPU, names)

    def _state(self, names: Names) -> str:
        either = f'__name__=~"{queries.POD_OWNER}|{queries.CONTAINERS}"'
        return self.scope.select("", names, either, f'{names.pod}!=""')

    def _starts(self, names: Names) -> str:
        return self.scope.containers(queries.STARTED, names)

    def _threads(self, names: Names) -> str:
        return self.scope.containers(queries.THREADS, names)

    def _first(self, either: Sequence[Names], selector: Callable[[Names], str]) -> Names | None:
        """Return the first of *either* whose labels the selected series have."""
        for names in either:
            seen = f"last_over_time({selector(names)}[{as_duration(self.window.seconds)}])"
            if self._now(f"count({seen})"):
                return names
        return None

    def _now(self, query: str) -> Sequence[Series]:
        return self.prometheus.at(query, self.window.end).series

    @contextmanager
    def judged(self) -> Iterator[None]:
        """Turn a damaged sample into a MachineError."""
        try:
            yield
        except ValueError as error:
            raise self.prometheus.damaged(error) from error
