"""The server's interface to the agent: its state, and the few actions."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from temper_core.events.event_log import EventLog
from temper_core.metrics.source import MetricSource
from temper_core.profiles.reloads import Reloaded
from temper_core.records.checks import Check
from temper_core.records.endpoints import Endpoint, Requester
from temper_core.records.invariants import Invariant
from temper_core.server.trial_endpoints import Trials


class AgentView(MetricSource, Protocol):
    """The agent as the server sees it. Any thread may call every method, and none blocks."""

    def plan_document(self) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/plan``, the plan in force and whether it can be swapped, or None without."""
        ...

    def observe_document(self, top: int | None = None) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/observe`` with the *top* busiest threads, or None before the first tick.

        The settings' number of threads is the default.
        """
        ...

    def recording_document(self) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/recording``, the last look as a recording holds it, or None before it."""
        ...

    def explain(self, pod: str | None) -> Any:  # noqa: ANN401 - JSON
        """Return the reasons for the placement of *pod*, or of every pod.

        Raises InputError for an unknown pod.
        """
        ...

    def safe_mode_requests(self) -> Mapping[str, Any]:
        """Return the safe-mode requests: requester to its ``reason`` and ``since``."""
        ...

    def unkept_requests(self) -> str:
        """Return why the requests are in memory only, and end with the agent. Empty if not."""
        ...

    def request_safe_mode(self, requester: str, reason: str) -> None:
        """Store *requester*'s request for safe mode. Raise InputError for an instrument's name."""
        ...

    def release_safe_mode(self, requester: str) -> bool:
        """Remove *requester*'s request. Return False if it had none.

        Raises InputError for an instrument's name.
        """
        ...

    def invariants(self) -> Sequence[tuple[str, Invariant]]:
        """Return the invariants of plugins, each with its plugin's name."""
        ...

    def reload_profiles(self) -> Reloaded:
        """Read all profile files again, and return what was found.

        Raises MachineError if the agent's loop does not do so within seconds.
        """
        ...

    def trials(self) -> Trials:
        """Return the agent's trials."""
        ...

    def events(self) -> EventLog:
        """Return the log of the node's events."""
        ...

    def endpoints(self) -> Sequence[tuple[str, Endpoint]]:
        """Return the plugins' endpoints, each with its plugin's name. Called once, at start."""
        ...

    def checks(self) -> Sequence[tuple[str, Check]]:
        """Run the instruments' checks and return them, each with its plugin's name."""
        ...

    def audit(
        self, request_line: str, requester: Requester, outcome: str, *, is_series: bool = False
    ) -> None:
        """Record a request to act, allowed or refused: method and path, requester and outcome.

        Of a series only the first that is allowed is recorded. Does no I/O, since it is called in
        the server's event loop.
        """
        ...

    def note_end(self, plugin: str, part: str, failure: str = "", *, is_hung: bool = False) -> None:
        """Count the end of an activity of *part* of *plugin* outside of ``call``."""
        ...

    def why_lost(self, plugin: str, part: str) -> str:
        """Return the reason why *part* of *plugin* was set aside, empty if it was not."""
        ...

    def failures(self) -> Mapping[str, str]:
        """Return the parts of the agent's loop whose last turn raised, each with its error."""
        ...

    def is_alive(self) -> bool:
        """Whether the agent's loop ran recently."""
        ...
