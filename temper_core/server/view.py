"""What the server may see of the agent, and the few things it may ask of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from temper_core.events.event_log import EventLog
from temper_core.metrics.source import MetricSource
from temper_core.records.checks import Check
from temper_core.records.endpoints import Endpoint, Requester
from temper_core.server.trial_endpoints import Trials


class AgentView(MetricSource, Protocol):
    """The agent as the server sees it. Any thread may call every method, and each is brief."""

    def plan_document(self) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/plan``: the plan in force, and whether it can be swapped; None without one."""
        ...

    def observe_document(self, top: int | None = None) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/observe`` with the *top* busiest threads (None: as set); None before a tick."""
        ...

    def recording_document(self) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/recording``: all that a recording holds of the last look; None before it."""
        ...

    def explain(self, pod: str | None) -> Any:  # noqa: ANN401 - JSON
        """Return why *pod*, or every pod, is where it is. Raise InputError for an unknown pod."""
        ...

    def safe_mode_requests(self) -> Mapping[str, Any]:
        """Return who asks for safe mode: requester to its ``reason`` and ``since``."""
        ...

    def request_safe_mode(self, requester: str, reason: str) -> None:
        """Remember that *requester* asks for safe mode. Raise MachineError if it cannot."""
        ...

    def release_safe_mode(self, requester: str) -> bool:
        """Forget *requester*'s request; False if it had none."""
        ...

    def trials(self) -> Trials:
        """Return the agent's trials."""
        ...

    def events(self) -> EventLog:
        """Return what happened on this node."""
        ...

    def endpoints(self) -> Sequence[tuple[str, Endpoint]]:
        """Return the plugins' endpoints, each with its plugin's name. Asked once, at start."""
        ...

    def checks(self) -> Sequence[tuple[str, Check]]:
        """Return the instruments' checks, each with its plugin's name. Asks the plugins."""
        ...

    def audit(self, request_line: str, requester: Requester, outcome: str) -> None:
        """Take note of a request that acts, or would have: method and path, and what became of it.

        Does no I/O: it is called in the server's own loop.
        """
        ...

    def note_end(self, plugin: str, part: str, failure: str = "", *, is_hung: bool = False) -> None:
        """Count how something ended that *part* of *plugin* did outside of ``call``."""
        ...

    def why_lost(self, plugin: str, part: str) -> str:
        """Return why *part* of *plugin* was set aside. Empty where it was not."""
        ...

    def is_alive(self) -> bool:
        """Whether the agent's loop has turned recently."""
        ...
