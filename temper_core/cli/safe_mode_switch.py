"""The kill switch of ``temper safe-mode``: it reaches every agent, or names those it missed.

The agent of the settings is asked first. Where it does not take the request, the host's file
requests safe mode. All other agents of the host are found by their processes. The node's lock and
the kernel's sched_ext state have the last word.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from attrs import evolve, field, frozen

from temper_core.cli.safe_mode_agents import (
    LARGEST_ANSWER_BYTES,
    AgentReport,
    Asking,
    Question,
    Requests,
    answer_fields,
    process_name,
    socket_settings,
)
from temper_core.errors import DocumentError, MachineError, TemperError
from temper_core.safe_mode.host_file import SafeModeFile
from temper_core.safe_mode.model import FILE_REQUESTER, Request
from temper_core.safe_mode.state_file import StateFile
from temper_core.scheduler.host.agent_lock import LOCK_FILE
from temper_core.scheduler.host.kernel import KernelState, SchedExt
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.host.running_agents import (
    AgentProcess,
    find_agents,
    lock_holder,
    peer_of,
)

if TYPE_CHECKING:
    from temper_core.settings import Settings

NOTICE_S = 2.0
LOOK_S = 0.2
DETACH_S = 15.0
"""Seconds in which an engine has to be gone: more than ``[scheduler] stop_deadline_s``."""

PATH = "/safe-mode"
EJECT = "echo S > /proc/sysrq-trigger"


def _usual_settings() -> "Settings":
    from temper_core.settings import Settings, load

    try:
        return load(None).settings
    except DocumentError:
        return Settings()


@frozen
class Host:
    """The host that is switched. *usual* returns the settings of an agent without a file."""

    roots: Roots = Roots()
    usual: "Callable[[], Settings]" = _usual_settings


@frozen
class SafeModeOutcome:
    """The outcome, and everything that stands now.

    ``requests`` and ``mode`` are those of the settings' agent. ``kept`` has, by file, the requests
    in the files of these and the usual settings that no agent reported. ``failure`` is why the
    settings' agent took no part. ``alarms`` are the reasons why safe mode is not certain.
    """

    done: str
    requests: Requests = field(factory=dict)
    mode: str = ""
    failure: TemperError | None = None
    agents: tuple[AgentReport, ...] = ()
    kept: Mapping[str, Requests] = field(factory=dict)
    alarms: tuple[str, ...] = ()

    @property
    def has_requests(self) -> bool:
        """Whether any request stands on this host."""
        others = any(agent.requests for agent in self.agents)
        return bool(self.requests or self.kept) or others


@frozen
class Switch:
    """The switch for the agent of *settings*, and for all others unless *is_for_one*."""

    settings: "Settings"
    host: Host = Host()
    is_for_one: bool = False

    def on(self, requester: str, reason: str) -> SafeModeOutcome:
        """Request safe mode from every agent. Write the file if the settings' agent takes none.

        Raises InputError for an invalid name or reason, MachineError if agent and file both fail.
        """
        from temper_core.safe_mode.request_document import parse_safe_mode_request

        body = {"requested": True, "requester": requester, "reason": reason}
        parse_safe_mode_request(body, requester)
        round_ = _Round(self, "on", body)
        try:
            answer = round_.ask(self.settings)
        except TemperError as error:
            outcome = self._by_file(round_, requester, reason, error)
        else:
            outcome = SafeModeOutcome(
                f"the agent was asked for safe mode by {requester!r}",
                **answer_fields(answer),
                agents=(round_.heard(answer),),
            )
        outcome = round_.completed(outcome)
        return evolve(outcome, alarms=tuple(self._alarms(outcome)))

    def off(self, requester: str) -> SafeModeOutcome:
        """Withdraw *requester*'s request from the agents and from the file, and no other."""
        from temper_core.client import NoAgentError
        from temper_core.safe_mode.request_document import parse_safe_mode_request

        body = {"requested": False, "requester": requester}
        parse_safe_mode_request(body, requester)
        removed = self._file.remove(requester)
        done = [f"withdrawn from {self.settings.safe_mode.file}"] if removed else []
        round_ = _Round(self, "off", body)
        try:
            answer = round_.ask(self.settings)
        except NoAgentError as error:
            done.append(f"{error}; the next agent keeps the requests made to an earlier one")
            outcome = SafeModeOutcome(
                "; ".join(done),
                remembered(self.settings),
                failure=error,
                agents=round_.unanswered(error),
            )
            return round_.completed(outcome)
        except TemperError as error:  # the agent refused, so 'on' had written the file
            answer = round_.by_own_socket()
            if answer is None and not removed:
                raise
            if answer is None:
                done.append(f"not from the agent: {error}")
                answer = round_.look(self.settings)
        if answer.get("released"):
            done.append("withdrawn from the agent")
        if removed:
            answer = self._once_noticed(answer, is_there=False)
        outcome = SafeModeOutcome(
            "; ".join(done) or f"{requester!r} had not requested it",
            **answer_fields(answer),
            agents=(round_.heard(answer),),
        )
        return round_.completed(outcome)

    def status(self) -> SafeModeOutcome:
        """Return the requests. If no agent answers, those that the next one would read."""
        from temper_core.client import NoAgentError

        round_ = _Round(self, "status", None)
        try:
            answer = round_.look(self.settings)
        except NoAgentError as error:
            outcome = SafeModeOutcome(
                "no agent answers",
                remembered(self.settings),
                failure=error,
                agents=round_.unanswered(error),
            )
        else:
            outcome = SafeModeOutcome("", **answer_fields(answer), agents=(round_.heard(answer),))
        return round_.completed(outcome)

    @property
    def _file(self) -> SafeModeFile:
        return SafeModeFile(Path(self.settings.safe_mode.file))

    def _by_file(
        self, round_: "_Round", requester: str, reason: str, error: TemperError
    ) -> SafeModeOutcome:
        """Write the file, and wait until an agent that answers has noticed it."""
        from temper_core.client import NoAgentError

        try:
            note = self._file.add(requester, reason)
        except MachineError as second:
            # The other agents were asked all the same.
            reports = round_.completed(SafeModeOutcome("")).agents
            heard = "".join(f"; {agent.name} has heard" for agent in reports if agent.has_heard)
            message = f"safe mode could not be requested: {error}; {second}{heard}"
            raise MachineError(message) from second
        file = self.settings.safe_mode.file
        done = f"{error}; so {file} now requests safe mode from every agent that reads it{note}"
        outcome = SafeModeOutcome(done, remembered(self.settings), failure=error)
        if (answer := round_.by_own_socket()) is not None:
            return evolve(outcome, **answer_fields(answer), agents=(round_.heard(answer),))
        if isinstance(error, NoAgentError):
            return evolve(outcome, agents=round_.unanswered(error))
        try:
            answer = self._once_noticed(round_.look(self.settings), is_there=True)
            report = round_.heard(answer)
        except TemperError as second:
            return evolve(outcome, agents=(round_.deaf(str(second)),))
        if FILE_REQUESTER not in report.requests:
            report = round_.deaf(f"it does not notice {file}")
        return evolve(outcome, **answer_fields(answer), agents=(report,))

    def _once_noticed(self, answer: Any, *, is_there: bool) -> Any:  # noqa: ANN401 - JSON
        """Wait until the agent has noticed that the file has come or gone. Return its answer."""
        deadline = time.monotonic() + self.settings.safe_mode.poll_s + NOTICE_S
        while (self._file.lines() is not None) == is_there and (
            FILE_REQUESTER in answer.get("requests", {})
        ) != is_there:
            if time.monotonic() > deadline:
                break
            time.sleep(LOOK_S)
            answer = _get(self.settings)
        return answer

    def _alarms(self, outcome: SafeModeOutcome) -> Iterator[str]:
        """Yield the reasons why the stock scheduler may not be in force."""
        for agent in outcome.agents:
            if agent.is_deaf:
                yield f"{agent.name} has NOT heard: {agent.problem}{_to_run(agent.remedy)}"
        yield from self._unasked(outcome)
        yield from self._unseen(outcome)
        state = _once_detached(SchedExt(self.host.roots.sched_ext))
        if state.is_layered:
            yield f"the engine {state.ops} is still attached{_to_run(EJECT)}"

    def _unasked(self, outcome: SafeModeOutcome) -> Iterator[str]:
        """Yield the agents that may enforce and were not asked, because only one was to be."""
        holder = lock_holder(self.host.roots)
        is_one_heard = any(agent.has_heard for agent in outcome.agents)
        for agent in outcome.agents:
            matters = agent.pid == holder or not is_one_heard
            if not agent.is_asked and not agent.requests and matters:
                yield f"{agent.name} was NOT asked{_to_run('temper safe-mode on')}"

    def _unseen(self, outcome: SafeModeOutcome) -> Iterator[str]:
        holder = lock_holder(self.host.roots)
        pids = {agent.pid for agent in outcome.agents}
        if holder is None or holder in pids:
            return
        path = self.host.roots.node / LOCK_FILE
        who = f"process {holder}" if holder else "a process that is not visible from here"
        remedy = f"kill -KILL {holder}" if holder else EJECT
        yield f"{who} holds {path}, so it may enforce, and has NOT heard{_to_run(remedy)}"


class _Round:
    """One question to all agents. The other agents are asked while the settings' agent is."""

    def __init__(self, switch: Switch, action: str, body: Mapping[str, Any] | None) -> None:
        self._switch = switch
        self._body = body
        agents = find_agents(switch.host.roots.proc)
        self._named = _named_agent(switch.settings, agents)
        others = [agent for agent in agents if agent != self._named]
        is_asked = not switch.is_for_one and body is not None
        self._question = Question(action, self.ask if is_asked else self.look, is_asked=is_asked)
        self._asking = Asking(self._question, others)

    def ask(self, settings: "Settings") -> Any:  # noqa: ANN401 - JSON
        from temper_core.client import ask_agent

        return ask_agent(
            PATH,
            method="PUT",
            body=self._body,
            settings=settings,
            largest_bytes=LARGEST_ANSWER_BYTES,
        )

    def look(self, settings: "Settings") -> Any:  # noqa: ANN401 - JSON
        return _get(settings)

    def by_own_socket(self) -> Any:  # noqa: ANN401 - JSON
        """Ask the process behind the settings' addresses over its own local socket.

        Return its answer, None without one. An agent with other settings may answer on the usual
        TCP address, where it lets nobody act.
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
            self._name(), self._pid(), is_asked, has_heard=is_asked, **answer_fields(answer)
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
        return evolve(outcome, kept=dict(_kept(self._switch, outcome)))

    def _pid(self) -> int:
        return self._named.pid if self._named is not None else 0

    def _name(self) -> str:
        if self._named is not None:
            return process_name(self._named)
        server = self._switch.settings.server
        return f"the agent at {server.socket or server.listen}"


def remembered(settings: "Settings") -> dict[str, Any]:
    """Return the requests that an agent with *settings* would read if it started now."""
    standing = StateFile(Path(settings.safe_mode.state)).read()
    if (request := SafeModeFile(Path(settings.safe_mode.file)).request()) is not None:
        standing[FILE_REQUESTER] = request
    return {name: attrs.asdict(request) for name, request in standing.items()}


def _kept(switch: Switch, outcome: SafeModeOutcome) -> Iterator[tuple[str, Requests]]:
    """Yield, by file, the requests that neither the settings' agent nor another one reported."""
    places = [SafeModeFile(Path(switch.settings.safe_mode.file))]
    usual = switch.host.usual().safe_mode
    states = []
    if usual != switch.settings.safe_mode:
        places.append(SafeModeFile(Path(usual.file)))
        states.append(StateFile(Path(usual.state)))
    reported = [outcome.requests, *(agent.requests for agent in outcome.agents)]
    for place in places:
        if (request := place.request()) is not None:
            yield from _unreported(place.path, {FILE_REQUESTER: request}, reported)
    for state in states:
        yield from _unreported(state.path, state.read(), reported)


def _unreported(
    path: Path, requests: Mapping[str, Request], reported: Sequence[Requests]
) -> Iterator[tuple[str, Requests]]:
    tables = {name: attrs.asdict(request) for name, request in requests.items()}
    left = {
        name: table
        for name, table in tables.items()
        if not any(requests.get(name) == table for requests in reported)
    }
    if left:
        yield str(path), left


def _named_agent(settings: "Settings", agents: "tuple[AgentProcess, ...]") -> "AgentProcess | None":
    """Return the process that answers at the addresses of *settings*, None if it is not known."""
    from temper_core.server.sockets import parse_listen

    server = settings.server
    try:
        pid = peer_of(Path(server.socket)) if server.socket else 0
    except OSError:
        pid = 0
    port = parse_listen(server.listen).port if server.listen and not pid else 0
    for agent in agents:
        if agent.pid == pid or (port and agent.listens_on_port(port)):
            return agent
    return None


def _get(settings: "Settings") -> Any:  # noqa: ANN401 - JSON
    from temper_core.client import ask_agent

    return ask_agent(PATH, settings=settings, largest_bytes=LARGEST_ANSWER_BYTES)


def _once_detached(kernel: SchedExt) -> KernelState:
    """Wait until no scx_layered is attached. Return the kernel's state."""
    deadline = time.monotonic() + DETACH_S
    while (state := kernel.read()).is_layered and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return state


def _to_run(remedy: str) -> str:
    return f"; run: {remedy}" if remedy else ""
