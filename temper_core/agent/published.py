"""The agent's published state: immutable values, replaced at once, read from any thread."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from temper_core.agent.pod_threads import pod_threads
from temper_core.errors import InputError
from temper_core.events.audit import Audit
from temper_core.events.event_log import EventLog
from temper_core.instruments.instruments import Instruments
from temper_core.metrics.declarations import Declarations
from temper_core.metrics.source import AgentCounters
from temper_core.metrics.totals import Sums, Totals
from temper_core.node.pod_watch import PodWatch
from temper_core.observe.document import observe_document
from temper_core.plan import explain, explanation_document, plan_document
from temper_core.plugin_host import PluginHost
from temper_core.plugin_host.answers import judged, read_metrics
from temper_core.plugin_host.shared_time import SharedTime
from temper_core.profiles.reloads import Reloaded
from temper_core.profiles.trials import TrialBook
from temper_core.profiles.watch import ProfileWatch
from temper_core.records.checks import Check
from temper_core.records.contributions import Exporter, Metric
from temper_core.records.declarations import MetricFamily
from temper_core.records.endpoints import Endpoint, Requester
from temper_core.records.invariants import Invariant
from temper_core.records.plans import Generation, LayerPlan
from temper_core.records.snapshots import PluginState, Snapshot, Status
from temper_core.rehearsal.recording_format import recording_document
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.scheduler.lifecycle import Scheduler
from temper_core.settings.models import Settings
from temper_core.steering.truth import Truths

STALE_S = 60.0
"""Seconds after which a loop without a turn counts as hung. One turn takes milliseconds, but a
plugin may use up its deadline several times. The watchdog ends the agent soon after it."""

Returned = TypeVar("Returned")

DEFAULT_REQUESTERS = frozenset({"cli", "socket", "token"})
"""Requesters of requests without a name. No instrument can use these names."""


class Published:
    """Implements the server's ``AgentView``. The agent's loop fills it."""

    def __init__(
        self,
        settings: Settings,
        host: PluginHost,
        scheduler: Scheduler,
        requests: SafeModeRequests,
        pods: PodWatch,
        profiles: ProfileWatch,
    ) -> None:
        self._settings = settings
        self._host = host
        self._scheduler = scheduler
        self._requests = requests
        self._pods = pods
        self._profiles = profiles
        self._exporters = host.gather("temper_exporters", Exporter)
        self._endpoints = host.gather("temper_endpoints", Endpoint)
        families = host.gather("temper_metrics", MetricFamily)
        self._declarations = Declarations((family.plugin, family.record) for family in families)
        self._snapshot: Snapshot | None = None
        self._totals = Totals()
        self.series = 0
        self._truth: Truths | None = None
        self._plan: LayerPlan | None = None
        self._instruments = Instruments()
        self._trials = TrialBook()
        self._invariants: tuple[tuple[str, Invariant], ...] = ()
        self._events = EventLog()
        self._audit = Audit(self._events)
        self._turned_at = time.monotonic()
        self._failures: Mapping[str, str] = {}

    def turned(self) -> None:
        """Record that the loop has turned."""
        self._turned_at = time.monotonic()

    def show_failures(self, failures: Mapping[str, str]) -> None:
        """Publish *failures*, the parts of the loop whose last turn raised, each with its error."""
        self._failures = failures

    def show_plan(self, plan: LayerPlan) -> None:
        """Publish the plan that places pods now."""
        self._plan = plan

    def show_snapshot(self, snapshot: Snapshot, truth: Truths | None = None) -> None:
        """Publish the last observation, and the kernel's view of all threads at that time."""
        self._totals.add(snapshot)
        self._truth, self._snapshot = truth, snapshot

    def show_trials(self, trials: TrialBook) -> None:
        """Serve *trials*."""
        self._trials = trials

    def trials(self) -> TrialBook:
        """Return the agent's trials."""
        return self._trials

    def plan(self) -> LayerPlan | None:
        """Return the plan that places pods now, None before the first."""
        return self._plan

    def show_instruments(self, instruments: Instruments) -> None:
        """Serve the endpoints, metrics and checks of *instruments*."""
        self._instruments = instruments

    def show_invariants(self, invariants: tuple[tuple[str, Invariant], ...]) -> None:
        """Publish *invariants*, each with its plugin's name."""
        self._invariants = invariants

    def invariants(self) -> Sequence[tuple[str, Invariant]]:
        """Return the invariants of plugins, each with its plugin's name."""
        return self._invariants

    def show_events(self, events: EventLog) -> None:
        """Serve *events*, and record every request that acts in it."""
        self._events, self._audit = events, Audit(events)

    def events(self) -> EventLog:
        """Return the log of this node's events."""
        return self._events

    def audit(
        self, request_line: str, requester: Requester, outcome: str, *, is_series: bool = False
    ) -> None:
        """Record a request that acts, such as ``PUT /safe-mode``, and ``done`` or its failure."""
        self._audit.note(request_line, requester, outcome, is_series=is_series)

    def checks(self) -> Sequence[tuple[str, Check]]:
        """Return the instruments' checks, each with its plugin's name."""
        return self._instruments.checks()

    def snapshot(self) -> Snapshot | None:
        """Return the last observation, None before the first."""
        return self._snapshot

    def generation(self) -> Generation | None:
        """Return the plan in force, None while there is none."""
        return self._scheduler.generation

    def plan_document(self) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/plan``: the plan in force, and whether it can be swapped, None without one."""
        generation = self._scheduler.generation
        if generation is None:
            return None
        obstacle = self._scheduler.swap_obstacle
        swap = {"can_swap": not obstacle, "why_no_swap": obstacle}
        return {**plan_document(generation.plan, generation.number), **swap}

    def status(self) -> Status:
        """Return the mode, and why."""
        return self._scheduler.status

    def observe_document(self, top: int | None = None) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/observe`` with the *top* busiest threads, None before the first tick."""
        if self._snapshot is None:
            return None
        return observe_document(self._snapshot, top or self._settings.observe.top_threads)

    def recording_document(self) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/recording``: the last look as a recording holds it, None before the first."""
        if self._snapshot is None:
            return None
        return recording_document(self._snapshot, self._settings, self._profiles.catalogue)

    def explain(self, pod: str | None) -> Any:  # noqa: ANN401 - JSON
        """Return why *pod*, or every pod, is where it is. Raise InputError for an unknown pod.

        The answer for one pod lists its threads, each with its layer by plan, by hint and in the
        engine.
        """
        if self._plan is None:
            raise InputError("nothing has been planned yet")
        plan = self._plan
        if not pod:
            keys = [assignment.pod.key for assignment in plan.assignments]
            return {
                "pods": [explanation_document(explain(plan, self._settings, key)) for key in keys]
            }
        explanation = explain(plan, self._settings, pod)
        top = self._settings.observe.top_threads
        threads = pod_threads(explanation.pod, self._truth, self._snapshot, top)
        return {**explanation_document(explanation), "threads": threads}

    def safe_mode_requests(self) -> Mapping[str, Any]:
        """Return the requests for safe mode by requester, each with its reason and time."""
        return {name: attrs.asdict(request) for name, request in self._requests.active().items()}

    def unkept_requests(self) -> str:
        """Return why the requests are in memory only, and end with the agent. Empty if not."""
        return self._requests.unkept

    def request_safe_mode(self, requester: str, reason: str) -> None:
        """Add *requester*'s request for safe mode. Raise InputError for an instrument's name."""
        self._require_operator(requester)
        self._requests.add(requester, reason)

    def release_safe_mode(self, requester: str) -> bool:
        """Withdraw *requester*'s request, False if it had none.

        Raises InputError for an instrument's name.
        """
        self._require_operator(requester)
        return self._requests.withdraw(requester)

    def _require_operator(self, requester: str) -> None:
        """Raise InputError for the name of an instrument, whose request only it may change."""
        if requester in self._instruments.names - DEFAULT_REQUESTERS:
            raise InputError(
                f"requester: {requester!r} is an instrument, which alone requests and withdraws in "
                "its name; choose another"
            )

    def reload_profiles(self) -> Reloaded:
        """Have the loop read all profile files, and return what it found.

        Raises MachineError if it does not do so within seconds.
        """
        return self._profiles.reloads.ask()

    def counters(self) -> AgentCounters:
        """Return the agent's counters."""
        counted = self._scheduler.counters
        failed = self._profiles.catalogue.failures
        failures = Counter(failure.profile or failure.source for failure in failed)
        return AgentCounters(
            reloads=dict(counted.reloads),
            ejections=dict(counted.ejections),
            plugin_failures=self._host.failures,
            profile_failures=dict(failures),
            swaps=dict(counted.swaps),
            swap_failures=dict(counted.swap_failures),
            events=self._events.counts(),
            stock_seconds={way.value: held for way, held in counted.stock_seconds_by_way.items()},
        )

    def note_series(self, count: int) -> None:
        """Record the number of series of a scrape."""
        self.series = count

    def note_taken(self, plugin: str, metric: str, owner: str) -> None:
        """Record as a defect that *metric* of *plugin* is dropped: *owner* has its name."""
        self._declarations.note_taken(plugin, metric, owner)

    def sums(self) -> Sums:
        """Return the sums of all observations so far."""
        return self._totals.sums

    def plugins(self) -> tuple[PluginState, ...]:
        """Return every plugin that was found, those set aside included."""
        return self._host.states()

    def call(
        self,
        plugin: str,
        function: Callable[..., Returned],
        *arguments: Any,  # noqa: ANN401 - those of the function
        part: str = "",
        is_clients: bool = False,
    ) -> Returned:
        """Call *part* of *plugin* within its deadline. InputError of a bad request passes.

        *is_clients* is whether a client's request caused the call.
        """
        allows = (InputError,)
        return self._host.call(
            plugin, function, *arguments, allows=allows, part=part, is_clients=is_clients
        )

    def note_end(self, plugin: str, part: str, failure: str = "", *, is_hung: bool = False) -> None:
        """Count the end of work that *part* of *plugin* did outside of ``call``."""
        self._host.note_end(plugin, part, failure, is_hung=is_hung)

    def why_lost(self, plugin: str, part: str) -> str:
        """Return why *part* of *plugin* was set aside. Empty if it was not."""
        return self._host.why_lost(plugin, part)

    def time_of_a_scrape(self) -> SharedTime:
        """Return the time that the exporters of all plugins have in one scrape."""
        deadline_s = self._host.settings.plugin_host.deadline_s
        return SharedTime(self._host, deadline_s, "all exporters have in a scrape")

    def exporters(self) -> Sequence[tuple[str, Exporter]]:
        """Return the exporters, each with its plugin's name."""
        by_hook = [(contribution.plugin, contribution.record) for contribution in self._exporters]
        exporters = [*by_hook, *self._instruments.exporters()]
        return [
            (plugin, self._declarations.held(plugin, _plain(plugin, exporter)))
            for plugin, exporter in exporters
        ]

    @property
    def undeclared(self) -> tuple[str, ...]:
        """Return the defects of metrics that plugins exported against their declarations."""
        return self._declarations.defects

    def endpoints(self) -> Sequence[tuple[str, Endpoint]]:
        """Return the plugins' endpoints, each with its plugin's name."""
        by_hook = [(contribution.plugin, contribution.record) for contribution in self._endpoints]
        return [*by_hook, *self._instruments.endpoints()]

    def pods_age_s(self) -> float:
        """Return how many seconds ago the pod source last answered."""
        return self._pods.age_s

    def failures(self) -> Mapping[str, str]:
        """Return the parts of the loop whose last turn raised, each with its error."""
        return dict(self._failures)

    def is_alive(self) -> bool:
        """Whether the agent's loop has turned recently."""
        longest_s = max(STALE_S, self._settings.scheduler.loop_deadline_s)
        return time.monotonic() - self._turned_at < longest_s


def _plain(plugin: str, exporter: Exporter) -> Exporter:
    """Return *exporter* with its metrics as copies of plain types."""

    def collect(snapshot: Snapshot) -> list[Metric]:
        metrics: list[Metric] = judged(
            read_metrics, exporter.collect(snapshot), plugin, exporter.collect
        )
        return metrics

    return attrs.evolve(exporter, collect=collect)
