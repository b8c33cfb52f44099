"""Measures all pods at one moment, within bounds of time and of queries."""

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import field, frozen

from temper_core import MachineError
from temper_kube.backoff import Backoff
from temper_plugin_power.measuring.questions import FAMILIES, dialect_of, energy_sample, questions
from temper_plugin_power.measuring.readings import Values, measures_of, values_of
from temper_plugin_power.workloads.energy import Dialect
from temper_plugin_power.workloads.pods import PodMeasures
from temper_prometheus.answers import Answer

QUERY_TIMEOUT_S = 5.0
DEADLINE_S = 30.0
"""Of all queries of one cycle, with their retries."""
RETRIES = 2
WINDOW_S = 600


class Server(Protocol):
    """A Prometheus, as ``temper_prometheus.client`` asks it."""

    def at(self, query: str, moment: int) -> Answer:
        """Return the value of each series of *query* at *moment*, in seconds."""
        ...

    def damaged(self, error: ValueError) -> MachineError:
        """Return the error for an answer that is damaged in the way of *error*."""
        ...


class Watcher(Protocol):
    """Is called with each query."""

    def asked(self, signal: str, seconds: float, *, failed: bool) -> None:
        """Note how long a query took, and whether it failed."""
        ...


class _Nobody:
    def asked(self, signal: str, seconds: float, *, failed: bool) -> None:
        """Note nothing."""


@frozen
class Measured:
    """The readings of all pods by a Prometheus."""

    measures: Mapping[str, PodMeasures]
    """By ``namespace/name``."""
    dialect: Dialect
    families: frozenset[str]
    """The families that only some exporters have."""
    energy_labels: tuple[str, ...] = ()
    """The names of the labels of energy, by which it should name pods. Empty without energy."""


@frozen
class Pace:
    """How patiently a Prometheus is asked. *sleep* and *clock* are in seconds."""

    retries: int = RETRIES
    deadline_s: float = DEADLINE_S
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic
    watcher: Watcher = field(factory=_Nobody)


def measure(
    server: Server,
    moment: int,
    *,
    window_s: int = WINDOW_S,
    energy: str = "auto",
    pace: Pace | None = None,
) -> Measured:
    """Return the measures of all pods at *moment*, with rates over *window_s* seconds.

    A query that fails is repeated after a pause that grows. Raises MachineError or InputError if
    any query fails for good: a measure that is missing by a fault would look like 0.
    """
    asking = _Asking(server, moment, pace or Pace())
    families = frozenset(
        each.labels.get("__name__", "") for each in asking.answer("families", FAMILIES).series
    )
    dialect = dialect_of(families, energy)
    values: dict[str, Values] = {}
    for question in questions(families, dialect, window_s):
        try:
            # An answer has no name here, so that it is freed before the next one is parsed.
            values[question.measure] = values_of(
                asking.answer(question.measure, question.query).series, question
            )
        except ValueError as error:
            raise server.damaged(error) from error
    return Measured(measures_of(values), dialect, families, _energy_labels(asking, dialect))


def _energy_labels(asking: "_Asking", dialect: Dialect) -> tuple[str, ...]:
    query = energy_sample(dialect)
    series = asking.answer("energy_labels", query).series if query else ()
    return tuple(sorted({label for each in series for label in each.labels} - {"__name__"}))


def answers(
    server: Server, moment: int, queries: Mapping[str, str], pace: Pace
) -> Mapping[str, Answer]:
    """Return the answers to some *queries*, by signal. Raises as ``measure``."""
    asking = _Asking(server, moment, pace)
    return {signal: asking.answer(signal, query) for signal, query in queries.items()}


class _Asking:
    """One cycle of queries."""

    def __init__(self, server: Server, moment: int, pace: Pace) -> None:
        self._server = server
        self._moment = moment
        self._pace = pace
        self._backoff = Backoff()
        self._until = pace.clock() + pace.deadline_s

    def answer(self, signal: str, query: str) -> Answer:
        """Return the answer to a query. Raises what its last repetition raises."""
        for _ in range(self._pace.retries):
            try:
                return self._once(signal, query)
            except MachineError:
                wait_s = self._backoff.failed()
                if self._pace.clock() + wait_s >= self._until:
                    raise
                self._pace.sleep(wait_s)
        return self._once(signal, query)

    def _once(self, signal: str, query: str) -> Answer:
        began = self._pace.clock()
        if began >= self._until:
            raise MachineError(f"the queries do not end within {self._pace.deadline_s:g} s")
        failed = True
        try:
            answer = self._server.at(query, self._moment)
            failed = False
        finally:
            self._pace.watcher.asked(signal, self._pace.clock() - began, failed=failed)
        return answer
