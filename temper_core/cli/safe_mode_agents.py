"""The agents of this host besides the one that the settings name, asked about safe mode."""

import os
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from temper_core.errors import MachineError, TemperError
from temper_core.foreign_writers import foreign_writer
from temper_core.patient_reading import cgroup_owner
from temper_core.scheduler.host.running_agents import AgentProcess

if TYPE_CHECKING:
    from temper_core.settings import Settings

MOST_ASKED = 64
"""Agents that are asked. A host has a handful."""
LARGEST_ANSWER_BYTES = 1 << 20
"""Of an answer to /safe-mode. A process of any user may look like an agent, and answers at will."""
WITHIN_S = 15.0
"""For all answers together."""
MALFORMED = "the agent's answer to /safe-mode is malformed"

Requests = Mapping[str, Mapping[str, Any]]


@frozen
class AgentReport:
    """One running agent, and whether it has heard.

    ``pid`` is 0 if its process is not visible from here. ``is_asked`` is false for an agent that
    was only looked at. ``problem`` is why it has not heard, ``remedy`` the command that reaches it.
    ``unkept`` is why its requests end with it.
    """

    name: str
    pid: int = 0
    is_asked: bool = True
    has_heard: bool = False
    mode: str = ""
    requests: Requests = field(factory=dict)
    problem: str = ""
    remedy: str = ""
    unkept: str = ""

    @property
    def is_deaf(self) -> bool:
        """Whether it was asked and has not heard."""
        return self.is_asked and not self.has_heard


@frozen
class Question:
    """The request to the agents. *ask* is called with settings that name one agent's socket."""

    action: str
    ask: "Callable[[Settings], Any]"
    is_asked: bool = True

    def report(self, agent: AgentProcess) -> AgentReport:
        """Ask one agent. Raises nothing: a failure is in the report."""
        report = AgentReport(process_name(agent), agent.pid, self.is_asked)
        try:
            answer = report_fields(self.ask(socket_settings(agent.local_socket())))
        except PermissionError:
            remedy = f"sudo temper safe-mode {self.action}"
            return evolve(report, problem="this user may not ask it", remedy=remedy)
        except OSError as error:
            problem = error.strerror or str(error)
            return evolve(report, problem=problem, remedy=self._remedy(agent))
        except TemperError as error:
            return evolve(report, problem=str(error), remedy=self.last_resort(agent.pid))
        return evolve(report, has_heard=self.is_asked, **answer)

    def last_resort(self, pid: int) -> str:
        """Return the command that works if an agent does not answer. The engine ends with it."""
        return f"kill -KILL {pid}" if self.action == "on" and pid else ""

    def _remedy(self, agent: AgentProcess) -> str:
        if (path := agent.settings_path) and _is_trusted(agent, path):
            return f"temper safe-mode {self.action} --settings {shlex.quote(path)}"
        return self.last_resort(agent.pid)


class Asking:
    """A question to *agents* that is under way. An agent that hangs delays no other.

    *holder* is the process that holds the node's lock, which may enforce. It is asked first.

    A process of any user may look like an agent, and may answer as slowly as it likes. So each has
    a thread of its own, which is left behind after ``WITHIN_S``.
    """

    def __init__(
        self, question: Question, agents: Sequence[AgentProcess], holder: int | None = None
    ) -> None:
        self._question, self._ends_at = question, time.monotonic() + WITHIN_S
        ordered = _by_turns(agents, holder)
        self._asked = {agent: SimpleQueue[AgentReport]() for agent in ordered[:MOST_ASKED]}
        self._left_out = ordered[MOST_ASKED:]
        for agent, answers in self._asked.items():
            self._begin(agent, answers)

    def reports(self) -> Iterator[AgentReport]:
        """Wait for the answers, and yield them.

        Agents beyond ``MOST_ASKED`` have one report for each user.
        """
        for agent, answers in self._asked.items():
            try:
                yield answers.get(timeout=max(0.0, self._ends_at - time.monotonic()))
            except Empty:
                yield self._without_answer(agent, f"no answer within {WITHIN_S:.0f} s")
        for user, number in sorted(Counter(agent.user for agent in self._left_out).items()):
            yield AgentReport(
                f"{number} more of user {user}'s processes that look like agents",
                is_asked=self._question.is_asked,
                problem=f"{MOST_ASKED} other agents were asked before",
            )

    def _begin(self, agent: AgentProcess, answers: SimpleQueue[AgentReport]) -> None:
        thread = threading.Thread(target=self._ask, args=(agent, answers), daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the user or the cgroup has no thread left
            answers.put(self._without_answer(agent, f"not asked: {error}"))

    def _ask(self, agent: AgentProcess, answers: SimpleQueue[AgentReport]) -> None:
        answers.put(self._question.report(agent))

    def _without_answer(self, agent: AgentProcess, problem: str) -> AgentReport:
        remedy = self._question.last_resort(agent.pid)
        report = AgentReport(process_name(agent), agent.pid, self._question.is_asked)
        return evolve(report, problem=problem, remedy=remedy)


def _by_turns(agents: Sequence[AgentProcess], holder: int | None) -> list[AgentProcess]:
    """Order *agents* so that the processes of one pod, unit or user cannot take all places.

    The first process of each owner comes before the second of any. In each turn those of root come
    first, which a process in a container may be.
    """
    turns = Counter[str]()
    keys = dict[AgentProcess, tuple[bool, int, bool, int]]()
    for agent in sorted(agents, key=lambda agent: (agent.user != 0, agent.pid)):
        owner = cgroup_owner(agent.proc)(agent.pid)
        keys[agent] = agent.pid != holder, turns[owner], agent.user != 0, agent.pid
        turns[owner] += 1
    return sorted(keys, key=lambda agent: keys[agent])


def _is_trusted(agent: AgentProcess, path: str) -> bool:
    """Whether a message may propose the settings file that a process names.

    Its command line is the process's own word, and acting by another user's settings would send
    the token to an address, and write a file, of that user's choice.
    """
    is_own = agent.user in (0, os.geteuid()) and agent.shares_files()
    return is_own and not foreign_writer(Path(path))


def answer_fields(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Return mode and requests of an answer to /safe-mode. Raise MachineError if malformed."""
    requests = answer.get("requests") if isinstance(answer, dict) else None
    if not isinstance(requests, dict):
        raise MachineError(MALFORMED)
    if not all(isinstance(request, dict) for request in requests.values()):
        raise MachineError(MALFORMED)
    return {"requests": requests, "mode": str(answer.get("mode", ""))}


def report_fields(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Return these and ``unkept``, which agents before 0.1 do not report."""
    return {**answer_fields(answer), "unkept": str(answer.get("unkept") or "")}


def socket_settings(path: Path) -> "Settings":
    """Return settings by which the agent on a local socket is asked."""
    from temper_core.settings.models import ServerSettings, Settings

    return Settings(server=ServerSettings(listen="", socket=str(path)))


def process_name(agent: AgentProcess) -> str:
    """Return the name of an agent's process for messages."""
    user = f" of user {agent.user}" if agent.user else ""
    return f"process {agent.pid}{user} ({agent.command_line})"
