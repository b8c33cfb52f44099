"""One question about safe mode to all agents of this host: the settings' agent, and all others."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from temper_core.cli.safe_mode_agents import (
    LARGEST_ANSWER_BYTES,
    AgentReport,
    Asking,
    Question,
    process_name,
    report_fields,
    socket_settings,
)
from temper_core.cli.safe_mode_outcome import Host, SafeModeOutcome, kept_requests
from temper_core.errors import TemperError
from temper_core.http.listener_owners import listener_owners
from temper_core.scheduler.host.running_agents import (
    AgentProcess,
    find_agents,
    lock_holder,
    peer_of,
)

if TYPE_CHECKING:
    from temper_core.settings import Settings

PATH = "/safe-mode"


class Round:
    """One question to all agents. The other agents are asked while the settings' agent is."""

    def __init__(
        self,
        settings: "Settings",
        host: Host,
        action: str,
        body: Mapping[str, Any] | None,
        *,
        is_for_one: bool,
    ) -> None:
        self._settings = settings
        self._host = host
        self._body = body
        self._is_asked_by_tcp = False
        agents = find_agents(host.roots.proc)
        self._named = named_agent(settings, agents)
        others = [agent for agent in agents if agent != self._named]
        is_asked = not is_for_one and body is not None
        self._question = Question(action, self.ask if is_asked else self.look, is_asked=is_asked)
        self._asking = Asking(self._question, others, lock_holder(host.roots))

    def ask_named(self, before_tcp: Callable[[], None]) -> Any:  # noqa: ANN401 - JSON
        """Ask the settings' agent. *before_tcp* is called if none answers at the local socket.

        A container in the host's network, with uid 0 and nothing more, may answer over TCP.
        """

        def begin_tcp() -> None:
            self._is_asked_by_tcp = True
            before_tcp()

        return self.ask(self._settings, begin_tcp)

    def ask(self, settings: "Settings", before_tcp: Callable[[], None] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Ask the agent of *settings* to change its requests. Return its answer."""
        from temper_core.client import ask_agent

        return ask_agent(
            PATH,
            method="PUT",
            body=self._body,
            settings=settings,
            largest_bytes=LARGEST_ANSWER_BYTES,
            before_tcp=before_tcp,
        )

    def look(self, settings: "Settings") -> Any:  # noqa: ANN401 - JSON
        """Return the requests of the agent of *settings*."""
        return look_at(settings)

    def by_own_socket(self) -> Any:  # noqa: ANN401 - JSON
        """Ask the process behind the settings' addresses over its own local socket.

        Return its answer, None without one. An agent with other settings may answer on the usual
        TCP address, where no request may act.
        """
        if self._named is None:
            return None
        try:
            return self.ask(socket_settings(self._named.local_socket()))
        except (OSError, TemperError):
            return None

    def heard(self, answer: Any) -> AgentReport:  # noqa: ANN401 - JSON
        """Return the report of the settings' agent, which answered."""
        is_asked = self._body is not None
        return AgentReport(
            self._name(), self._pid(), is_asked, has_heard=is_asked, **report_fields(answer)
        )

    def deaf(self, problem: str) -> AgentReport:
        """Return the report of the settings' agent, which did not take part."""
        remedy = self._question.last_resort(self._pid())
        return AgentReport(self._name(), self._pid(), problem=problem, remedy=remedy)

    def unanswered(self, error: TemperError) -> tuple[AgentReport, ...]:
        """Return the report of the settings' agent if its process runs all the same."""
        return () if self._named is None else (self.deaf(str(error)),)

    def completed(self, outcome: SafeModeOutcome) -> SafeModeOutcome:
        """Wait for the other agents. Add their reports, and what the usual files hold."""
        outcome = evolve(outcome, agents=(*outcome.agents, *self._asking.reports()))
        if outcome.is_file_silent:
            return outcome
        return evolve(outcome, kept=dict(kept_requests(outcome, self._settings, self._host)))

    def _pid(self) -> int:
        return self._named.pid if self._named is not None else 0

    def _name(self) -> str:
        if self._named is not None:
            return process_name(self._named)
        server = self._settings.server
        socket = "" if self._is_asked_by_tcp else server.socket
        return f"the agent at {socket or server.listen or server.socket}"


def named_agent(settings: "Settings", agents: "tuple[AgentProcess, ...]") -> "AgentProcess | None":
    """Return the process that answers at the addresses of *settings*, None if it is not known."""
    server = settings.server
    try:
        pid = peer_of(Path(server.socket)) if server.socket else 0
    except OSError:
        pid = 0
    if pid or not server.address:
        return next((agent for agent in agents if agent.pid == pid), None)
    # Looking for a socket among the descriptors of a process takes time of that process's choice.
    port = server.address.port
    try:
        users = listener_owners(port, server.address.reachable.host)
    except OSError:
        return None
    candidates = (agent for agent in agents if agent.user in users)
    return next((agent for agent in candidates if agent.listens_on_port(port)), None)


def look_at(settings: "Settings") -> Any:  # noqa: ANN401 - JSON
    """Return what the agent of *settings* answers to ``GET /safe-mode``."""
    from temper_core.client import ask_agent

    return ask_agent(PATH, settings=settings, largest_bytes=LARGEST_ANSWER_BYTES, is_trusted=True)
