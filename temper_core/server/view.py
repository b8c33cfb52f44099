"""What the server may see of the agent, and the few things it may ask of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from temper_core.metrics.source import MetricSource
from temper_core.records.endpoints import Endpoint
from temper_core.server.trial_endpoints import Trials


class AgentView(MetricSource, Protocol):
    """The agent as the server sees it; any thread may call every method, and each is brief."""

    def plan_document(self) -> Any | None:  # noqa: ANN401 - JSON
        """Return ``/plan``: the plan in force, and whether it can be swapped; None without one."""
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

    def trials(self) -> Trials:
        """Return the agent's trials."""
        ...

    def endpoints(self) -> Sequence[tuple[str, Endpoint]]:
        """Return the plugins' endpoints, each with its plugin's name; asked once, at start."""
        ...

    def is_alive(self) -> bool:
        """Whether the agent's loop has turned recently."""
        ...
