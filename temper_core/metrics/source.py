"""The sources of metrics: the counters, and the parts of the agent that a scrape reads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from attrs import field, frozen

from temper_core.metrics.totals import Sums
from temper_core.plugin_host.shared_time import SharedTime
from temper_core.records.contributions import Exporter
from temper_core.records.histogram import Histogram
from temper_core.records.plans import Generation
from temper_core.records.snapshots import PluginState, Snapshot, Status

Returned = TypeVar("Returned")


@frozen
class AgentCounters:
    """The agent's counts since it started.

    ``reloads`` are by cause, ``ejections`` by kind, ``plugin_failures`` by plugin.
    ``profile_failures`` counts the profiles that could not be loaded, by profile id (or file, if
    the id is unknown). ``swaps`` counts the planned changes of the engine by way (``warm``,
    ``cold``). ``swap_failures`` counts the successors that could not take over, by kind.
    ``stock_seconds`` is the time on the stock scheduler during a swap, by way. ``events`` are by
    kind.
    """

    reloads: Mapping[str, int] = field(factory=dict)
    ejections: Mapping[str, int] = field(factory=dict)
    plugin_failures: Mapping[str, int] = field(factory=dict)
    profile_failures: Mapping[str, int] = field(factory=dict)
    swaps: Mapping[str, int] = field(factory=dict)
    swap_failures: Mapping[str, int] = field(factory=dict)
    stock_seconds: Mapping[str, Histogram] = field(factory=dict)
    events: Mapping[str, int] = field(factory=dict)


class MetricSource(Protocol):
    """The agent as a scrape reads it. Any thread may call every method.

    Every method returns at once, except that ``call`` may take up to the plugin's deadline.
    """

    def snapshot(self) -> Snapshot | None:
        """Return the last observation, or None before the first."""
        ...

    def generation(self) -> Generation | None:
        """Return the plan in force, or None without one."""
        ...

    def status(self) -> Status:
        """Return the mode and its reason."""
        ...

    def counters(self) -> AgentCounters:
        """Return the counts so far."""
        ...

    def plugins(self) -> tuple[PluginState, ...]:
        """Return every plugin that was found, including plugins that were set aside."""
        ...

    def call(
        self,
        plugin: str,
        function: Callable[..., Returned],
        *arguments: Any,  # noqa: ANN401 - the arguments of *function*
        part: str = "",
        is_clients: bool = False,
    ) -> Returned:
        """Call *function* of *plugin* within its deadline. Raise PluginError on any failure.

        A failure is attributed to *part* of the plugin, or to the whole plugin if *part* is empty.
        With *is_clients* a client's request caused the call.
        """
        ...

    def time_of_a_scrape(self) -> SharedTime:
        """Return the time that the exporters of all plugins have in one scrape."""
        ...

    def exporters(self) -> Sequence[tuple[str, Exporter]]:
        """Return the exporters, each with its plugin's name."""
        ...

    def note_series(self, count: int) -> None:
        """Record the number of series of a scrape."""
        ...

    def note_taken(self, plugin: str, metric: str, owner: str) -> None:
        """Record that *metric* of *plugin* is dropped: plugin *owner*, or the core, has its name.

        *owner* is empty for the core.
        """
        ...

    def sums(self) -> Sums:
        """Return the sums over all observations so far."""
        ...

    def pods_age_s(self) -> float:
        """Return the seconds since the pod source last answered, infinity before its first."""
        ...
