"""The agents of this host besides the one that the settings name, asked about safe mode."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from temper_core.errors import MachineError, TemperError
from temper_core.scheduler.host.running_agents import AgentProcess

if TYPE_CHECKING:
    from temper_core.settings import Settings

MOST_AT_ONCE = 16
MALFORMED = "the agent's answer to /safe-mode is malformed"

Requests = Mapping[str, Mapping[str, Any]]


@frozen
class AgentReport:
    """One running agent, and whether it has heard.

    ``pid`` is 0 if its process is not visible from here. ``is_asked`` is false for an agent that
    was only looked at. ``problem`` is why it has not heard, ``remedy`` the command that reaches it.
    """

    name: str
    pid: int = 0
    is_asked: bool = True
    has_heard: bool = False
    mode: str = ""
    requests: Requests = field(factory=dict)
    problem: str = ""
    remedy: str = ""

    @property
    def is_deaf(self) -> bool:
        """Whether it was asked and has not heard."""
        return self.is_asked and not self.has_heard


@frozen
class Question:
    """What the agents are asked: *ask* is called with settings that name one agent's socket."""

    wish: str
    ask: "Callable[[Settings], Any]"
    is_asked: bool = True

    def report(self, agent: AgentProcess) -> AgentReport:
        """Ask one agent. Raises nothing: a failure is in the report."""
        report = AgentReport(process_name(agent), agent.pid, self.is_asked)
        try:
            answer = answer_fields(self.ask(socket_settings(agent.local_socket())))
        except PermissionError:
            remedy = f"sudo temper safe-mode {self.wish}"
            return evolve(report, problem="this user may not ask it", remedy=remedy)
        except OSError as error:
            problem = error.strerror or str(error)
            return evolve(report, problem=problem, remedy=self._remedy(agent))
        except TemperError as error:
            return evolve(report, problem=str(error), remedy=self.last_resort(agent.pid))
        return evolve(report, has_heard=self.is_asked, **answer)

    def last_resort(self, pid: int) -> str:
        """Return the command that works if an agent does not answer. The engine ends with it."""
        return f"kill -KILL {pid}" if self.wish == "on" and pid else ""

    def _remedy(self, agent: AgentProcess) -> str:
        if path := agent.settings_path:
            return f"temper safe-mode {self.wish} --settings {shlex.quote(path)}"
        return self.last_resort(agent.pid)


class Asking:
    """A question to *agents* that is under way. An agent that hangs delays no other."""

    def __init__(self, question: Question, agents: Sequence[AgentProcess]) -> None:
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE, "ask-agent")
        self._futures = [self._pool.submit(question.report, agent) for agent in agents]

    def reports(self) -> Iterator[AgentReport]:
        """Wait for the answers, and yield them in the order of the agents."""
        for future in self._futures:
            yield future.result()
        self._pool.shutdown()


def answer_fields(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Return mode and requests of an answer to /safe-mode. Raise MachineError if malformed."""
    requests = answer.get("requests") if isinstance(answer, dict) else None
    if not isinstance(requests, dict):
        raise MachineError(MALFORMED)
    if not all(isinstance(request, dict) for request in requests.values()):
        raise MachineError(MALFORMED)
    return {"requests": requests, "mode": str(answer.get("mode", ""))}


def socket_settings(path: Path) -> "Settings":
    """Return settings by which the agent on a local socket is asked."""
    from temper_core.settings.models import ServerSettings, Settings

    return Settings(server=ServerSettings(listen="", socket=str(path)))


def process_name(agent: AgentProcess) -> str:
    """Return the name of an agent's process for messages."""
    user = f" of user {agent.user}" if agent.user else ""
    return f"process {agent.pid}{user} ({agent.command_line})"
