"""What metrics are made from: the counters, and the parts of the agent that a scrape reads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from attrs import field, frozen

from temper_core.metrics.totals import Sums
from temper_core.records.contributions import Exporter
from temper_core.records.histogram import Histogram
from temper_core.records.plans import Generation
from temper_core.records.snapshots import PluginState, Snapshot, Status

Returned = TypeVar("Returned")


@frozen
class AgentCounters:
    """What the agent has counted since it started.

    ``reloads`` by cause, ``ejections`` by kind, ``plugin_failures`` by plugin. ``profile_failures``
    are the profiles that could not be loaded, by profile id (or file, where the id is unknown).
    ``swaps`` are the planned changes of the engine by their way (``warm``, ``cold``),
    ``swap_failures`` the successors that could not take over, by kind, and ``stock_seconds`` by
    way how long the node was on the stock scheduler meanwhile. ``events`` by kind.
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
    """The agent as a scrape reads it. Any thread may call every method, and each is brief.

    Only ``call`` may take long: up to the plugin's deadline.
    """

    def snapshot(self) -> Snapshot | None:
        """Return the last observation; None before the first."""
        ...

    def generation(self) -> Generation | None:
        """Return the plan in force; None while there is none."""
        ...

    def status(self) -> Status:
        """Return the mode, and why."""
        ...

    def counters(self) -> AgentCounters:
        """Return what was counted so far."""
        ...

    def plugins(self) -> tuple[PluginState, ...]:
        """Return every plugin that was found, those set aside included."""
        ...

    def call(
        self,
        plugin: str,
        function: Callable[..., Returned],
        *arguments: Any,  # noqa: ANN401 - whatever the function takes
        part: str = "",
    ) -> Returned:
        """Call into *plugin* within its deadline. Raise PluginError whatever goes wrong.

        A failure is put down to *part* of the plugin, to all of it where none is named.
        """
        ...

    def exporters(self) -> Sequence[tuple[str, Exporter]]:
        """Return the exporters, each with its plugin's name."""
        ...

    def note_series(self, count: int) -> None:
        """Take note of how many series a scrape has had."""
        ...

    def sums(self) -> Sums:
        """Return what all observations so far add up to."""
        ...

    def pods_age_s(self) -> float:
        """Return the seconds since the pod source last answered. Infinity before it ever did."""
        ...
