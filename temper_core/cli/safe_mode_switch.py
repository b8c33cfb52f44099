"""The kill switch of ``temper safe-mode``: it reaches every agent, or names those it missed.

The agent of the settings is asked first. If it does not take the request, does not answer at its
local socket, or not for some seconds, the host's file requests safe mode. All other agents of the
host are found by their processes. The node's lock and the kernel's sched_ext state have the last
word.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from temper_core.cli.host_file_process import SilentFileError
from temper_core.cli.safe_mode_agents import answer_fields
from temper_core.cli.safe_mode_outcome import (
    LOOK_S,
    Host,
    SafeModeOutcome,
    alarms_of,
    remembered,
)
from temper_core.cli.safe_mode_round import Round, look_at
from temper_core.cli.silent_agent import FileIfSilent
from temper_core.errors import MachineError, TemperError
from temper_core.safe_mode.host_file import SafeModeFile
from temper_core.safe_mode.model import FILE_REQUESTER

if TYPE_CHECKING:
    from temper_core.settings import Settings

NOTICE_S = 2.0


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
        add = partial(self.host.change_file, self._file.path, "add", requester, reason)
        with FileIfSilent(add) as silent:
            round_ = self._round("on", body)
            answer = _answer_or_error(round_, silent.write)
        if isinstance(answer, TemperError):
            outcome = self._by_file(round_, silent, answer)
        else:
            file = f", and {self._file.path} requests it too" if silent.is_written else ""
            file = f"{file}; {silent.problem}" if silent.problem else file
            outcome = SafeModeOutcome(
                f"the agent was asked for safe mode by {requester!r}{file}",
                **answer_fields(answer),
                agents=(round_.heard(answer),),
                is_file_silent=silent.is_silent,
            )
        outcome = round_.completed(outcome)
        alarms = (*outcome.alarms, *alarms_of(outcome, self.host.roots))
        return evolve(outcome, alarms=alarms)

    def off(self, requester: str) -> SafeModeOutcome:
        """Withdraw *requester*'s request from the agents and from the file, and no other."""
        from temper_core.safe_mode.request_document import parse_safe_mode_request

        body = {"requested": False, "requester": requester}
        parse_safe_mode_request(body, requester)
        removed, silence = self._removed(requester)
        round_ = self._round("off", body)
        outcome = self._off(round_, requester, removed=removed, is_silent=bool(silence))
        alarms = (silence,) if silence else ()
        return round_.completed(evolve(outcome, is_file_silent=bool(silence), alarms=alarms))

    def _removed(self, requester: str) -> tuple[bool, str]:
        """Return whether a request was removed from the file, or why its disk does not answer."""
        try:
            return bool(self.host.change_file(self._file.path, "remove", requester)), ""
        except SilentFileError as error:
            return False, str(error)

    def _off(
        self, round_: Round, requester: str, *, removed: bool, is_silent: bool
    ) -> SafeModeOutcome:
        """Withdraw the request from the settings' agent, after the file."""
        from temper_core.client import NoAgentError

        done = [f"withdrawn from {self.settings.safe_mode.file}"] if removed else []
        try:
            answer = round_.ask(self.settings)
        except NoAgentError as error:
            done.append(f"{error}; the next agent keeps the requests made to an earlier one")
            return SafeModeOutcome(
                "; ".join(done),
                {} if is_silent else remembered(self.settings),
                failure=error,
                agents=round_.unanswered(error),
            )
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
        return SafeModeOutcome(
            "; ".join(done) or f"{requester!r} had not requested it",
            **answer_fields(answer),
            agents=(round_.heard(answer),),
        )

    def status(self) -> SafeModeOutcome:
        """Return the requests. If no agent answers, those that the next one would read."""
        from temper_core.client import NoAgentError

        round_ = self._round("status", None)
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

    def _round(self, action: str, body: Mapping[str, Any] | None) -> Round:
        return Round(self.settings, self.host, action, body, is_for_one=self.is_for_one)

    @property
    def _file(self) -> SafeModeFile:
        return SafeModeFile(Path(self.settings.safe_mode.file))

    def _by_file(self, round_: Round, silent: FileIfSilent, error: TemperError) -> SafeModeOutcome:
        """Write the file, and wait until an agent that answers has noticed it."""
        from temper_core.client import NoAgentError

        silent.write()
        if silent.is_silent:
            return self._without_file(round_, str(silent.problem), error)
        if silent.problem is not None:
            # The other agents were asked all the same.
            reports = round_.completed(SafeModeOutcome("")).agents
            heard = "".join(f"; {agent.name} has heard" for agent in reports if agent.has_heard)
            message = f"safe mode could not be requested: {error}; {silent.problem}{heard}"
            raise MachineError(message) from silent.problem
        file = self.settings.safe_mode.file
        done = (
            f"{error}; so {file} now requests safe mode from every agent that reads it{silent.note}"
        )
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

    @staticmethod
    def _without_file(round_: Round, problem: str, error: TemperError) -> SafeModeOutcome:
        """Return the outcome where neither the settings' agent nor the file's disk answers."""
        outcome = SafeModeOutcome(
            f"{error}; {problem}", failure=error, alarms=(problem,), is_file_silent=True
        )
        if (answer := round_.by_own_socket()) is not None:
            return evolve(outcome, **answer_fields(answer), agents=(round_.heard(answer),))
        return evolve(outcome, agents=round_.unanswered(error))

    def _once_noticed(self, answer: Any, *, is_there: bool) -> Any:  # noqa: ANN401 - JSON
        """Wait until the agent has noticed that the file has come or gone. Return its answer."""
        deadline = time.monotonic() + self.settings.safe_mode.poll_s + NOTICE_S
        while (self._file.lines() is not None) == is_there and (
            FILE_REQUESTER in answer.get("requests", {})
        ) != is_there:
            if time.monotonic() > deadline:
                break
            time.sleep(LOOK_S)
            answer = look_at(self.settings)
        return answer


def _answer_or_error(round_: Round, before_tcp: Callable[[], None]) -> Any:  # noqa: ANN401 - JSON
    try:
        return round_.ask_named(before_tcp)
    except TemperError as error:
        return error
