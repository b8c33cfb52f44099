"""What the server may see of the agent, and the few things it may ask of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from attrs import field, frozen

from temper_core.records.contributions import Endpoint, Exporter
from temper_core.records.histogram import Histogram
from temper_core.records.plans import Generation
from temper_core.records.snapshots import PluginState, Snapshot, Status
from temper_core.server.totals import Sums

Returned = TypeVar("Returned")


@frozen
class Counters:
    """What the agent has counted since it started.

    ``reloads`` by cause, ``ejections`` by kind, ``plugin_failures`` by plugin; ``profile_failures``
    are the profiles that could not be loaded, by profile id (or file, where the id is unknown);
    ``swaps`` are the planned changes of the engine by their way (``warm``, ``cold``),
    ``swap_failures`` the successors that could not take over, by kind, and ``stock_seconds`` by
    way how long the node was on the stock scheduler meanwhile.
    """

    reloads: Mapping[str, int] = field(factory=dict)
    ejections: Mapping[str, int] = field(factory=dict)
    plugin_failures: Mapping[str, int] = field(factory=dict)
    profile_failures: Mapping[str, int] = field(factory=dict)
    swaps: Mapping[str, int] = field(factory=dict)
    swap_failures: Mapping[str, int] = field(factory=dict)
    stock_seconds: Mapping[str, Histogram] = field(factory=dict)


class AgentView(Protocol):
    """The agent as the server sees it; every method may be called from any thread, and is brief.

    Only ``call`` may take long: up to the plugin's deadline.
    """

    def snapshot(self) -> Snapshot | None:
        """Return the last observation; None before the first."""
        ...

    def generation(self) -> Generation | None:
        """Return the plan in force; None while there is none."""
        ...

    def plan_document(self) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/plan``: the plan in force, and whether it can be swapped; None without one."""
        ...

    def status(self) -> Status:
        """Return the mode, and why."""
        ...

    def observe_document(self, top: int | None = None) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/observe`` with the *top* busiest threads (None: as set); None before a tick."""
        ...

    def recording_document(self) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/recording``: all that a recording holds of the last look; None before it."""
        ...

    def wakes_document(self) -> Any:  # noqa: ANN401 - JSON
        """Return ``/wakes``: whether wake-ups are watched, and the last window."""
        ...

    def want_wakes(self, seconds: float) -> None:
        """Watch wake-ups for *seconds* from now on, or longer where somebody wants that."""
        ...

    def explain(self, pod: str | None) -> Any:  # noqa: ANN401 - JSON
        """Return why *pod*, or every pod, is where it is; raise InputError for an unknown pod."""
        ...

    def safe_mode_requests(self) -> Mapping[str, Any]:
        """Return who asks for safe mode: requester to its ``reason`` and ``since``."""
        ...

    def request_safe_mode(self, requester: str, reason: str) -> None:
        """Remember that *requester* asks for safe mode; raise MachineError if it cannot."""
        ...

    def release_safe_mode(self, requester: str) -> bool:
        """Forget *requester*'s request; False if it had none."""
        ...

    def counters(self) -> Counters:
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
        """Call into *plugin* within its deadline; raise PluginError whatever goes wrong.

        A failure is put down to *part* of the plugin, to all of it where none is named.
        """
        ...

    def exporters(self) -> Sequence[tuple[str, Exporter]]:
        """Return the exporters, each with its plugin's name."""
        ...

    def endpoints(self) -> Sequence[tuple[str, Endpoint]]:
        """Return the plugins' endpoints, each with its plugin's name; asked once, at start."""
        ...

    def note_series(self, count: int) -> None:
        """Take note of how many series a scrape has had."""
        ...

    def sums(self) -> Sums:
        """Return what all observations so far add up to."""
        ...

    def is_alive(self) -> bool:
        """Whether the agent's loop has turned recently."""
        ...

    def pods_age_s(self) -> float:
        """Return the seconds since the pod source last answered; infinity before it ever did."""
        ...
