"""``temper safe-mode``: request the stock scheduler, withdraw the request, list the requests."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import field, frozen

from temper_core.console import output_option, print_json, read_settings, settings_option
from temper_core.errors import EXIT_FINDINGS, MachineError, TemperError
from temper_core.safe_mode.host_file import SafeModeFile
from temper_core.safe_mode.model import FILE_REQUESTER

if TYPE_CHECKING:
    from temper_core.settings import Settings

NOTICE_S = 2.0
LOOK_S = 0.2
LATEST_S = 2**32

Requests = Mapping[str, Mapping[str, Any]]


@frozen
class SafeModeOutcome:
    """The outcome, and the requests that stand now. ``failure`` is why no agent took part."""

    done: str
    requests: Requests = field(factory=dict)
    mode: str = ""
    failure: TemperError | None = None


@click.command("safe-mode")
@click.argument("wish", type=click.Choice(["on", "off", "status"]))
@click.option("--reason", default="", help="Why, in one line; shown with the request.")
@click.option(
    "--requester",
    default="cli",
    show_default=True,
    help="Name of the requester; safe mode ends with the last request.",
)
@settings_option
@output_option
def command(
    wish: str, reason: str, requester: str, settings_path: Path | None, output: str
) -> None:
    """Request the stock scheduler (on), withdraw the request (off), or list requests (status).

    If no agent takes the request, 'on' writes a file on this host that every agent honours, and
    'off' removes it. Exit codes: 1 if requests of others stand after 'off', 3 if nothing could be
    done, or if no agent answers 'status'.
    """
    settings = read_settings(settings_path)
    if wish == "on":
        _print(switch_on(settings, requester, reason), output)
    elif wish == "off":
        outcome = switch_off(settings, requester)
        _print(outcome, output)
        if outcome.requests:
            raise SystemExit(EXIT_FINDINGS)
    else:
        outcome = look(settings)
        _print(outcome, output)
        if outcome.failure is not None:
            raise outcome.failure


def switch_on(settings: "Settings", requester: str, reason: str) -> SafeModeOutcome:
    """Request safe mode from the agent. If that fails for any reason, write the file.

    Raises InputError for an invalid name or reason, MachineError if both ways fail.
    """
    from temper_core.client import ask_agent
    from temper_core.safe_mode.request_document import parse_safe_mode_request

    body = {"requested": True, "requester": requester, "reason": reason}
    parse_safe_mode_request(body, requester)
    try:
        answer = ask_agent("/safe-mode", method="PUT", body=body, settings=settings)
    except TemperError as error:
        return _leave_file(settings, requester, reason, error)
    return SafeModeOutcome(f"the agent was asked for safe mode by {requester!r}", **_said(answer))


def switch_off(settings: "Settings", requester: str) -> SafeModeOutcome:
    """Withdraw *requester*'s request from the agent and from the file, and no other."""
    from temper_core.client import NoAgentError, ask_agent
    from temper_core.safe_mode.request_document import parse_safe_mode_request

    body = {"requested": False, "requester": requester}
    parse_safe_mode_request(body, requester)
    removed = _file(settings).remove(requester)
    done = [f"withdrawn from {settings.safe_mode.file}"] if removed else []
    try:
        answer = ask_agent("/safe-mode", method="PUT", body=body, settings=settings)
    except NoAgentError as error:
        done.append(f"{error}; the next agent keeps the requests made to an earlier one")
        return SafeModeOutcome("; ".join(done), _remembered(settings), failure=error)
    except TemperError as error:  # the agent refused, so 'on' had written the file
        if not removed:
            raise
        done.append(f"not from the agent: {error}")
        answer = ask_agent("/safe-mode", settings=settings)
    if answer.get("released"):
        done.append("withdrawn from the agent")
    if removed:
        answer = _once_noticed(settings, answer)
    return SafeModeOutcome(
        "; ".join(done) or f"{requester!r} had not requested it", **_said(answer)
    )


def look(settings: "Settings") -> SafeModeOutcome:
    """Return the agent's requests. If no agent answers, those that the next one would read."""
    from temper_core.client import NoAgentError, ask_agent

    try:
        answer = ask_agent("/safe-mode", settings=settings)
    except NoAgentError as error:
        return SafeModeOutcome("no agent answers", _remembered(settings), failure=error)
    return SafeModeOutcome("", **_said(answer))


def _leave_file(
    settings: "Settings", requester: str, reason: str, error: TemperError
) -> SafeModeOutcome:
    try:
        _file(settings).add(requester, reason)
    except MachineError as second:
        raise MachineError(f"safe mode could not be requested: {error}; {second}") from second
    file = settings.safe_mode.file
    done = f"{error}; so {file} now requests safe mode from every agent of this host"
    return SafeModeOutcome(done, _remembered(settings), failure=error)


def _once_noticed(settings: "Settings", answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Wait until the agent has noticed that the file is gone. Return its answer."""
    from temper_core.client import ask_agent

    deadline = time.monotonic() + settings.safe_mode.poll_s + NOTICE_S
    while _file(settings).lines() is None and FILE_REQUESTER in answer.get("requests", {}):
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_S)
        answer = ask_agent("/safe-mode", settings=settings)
    return answer


def _file(settings: "Settings") -> SafeModeFile:
    return SafeModeFile(Path(settings.safe_mode.file))


def _said(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    if not isinstance(answer, dict) or not isinstance(answer.get("requests"), dict):
        raise MachineError("the agent's answer to /safe-mode is malformed")
    return {"requests": answer["requests"], "mode": str(answer.get("mode", ""))}


def _remembered(settings: "Settings") -> Requests:
    """Return the requests that an agent would read from this host if it started now."""
    import attrs

    from temper_core.safe_mode.state_file import StateFile

    standing = StateFile(Path(settings.safe_mode.state)).read()
    if (request := _file(settings).request()) is not None:
        standing[FILE_REQUESTER] = request
    return {name: attrs.asdict(request) for name, request in standing.items()}


def _print(outcome: SafeModeOutcome, output: str) -> None:
    if output == "json":
        shown = {"done": outcome.done, "mode": outcome.mode, "requests": dict(outcome.requests)}
        print_json(shown)
        return
    # Right after a request the mode is still the old one, so that it is not printed.
    click.echo(outcome.done or f"mode: {outcome.mode}")
    if not outcome.requests:
        click.echo("no request for safe mode stands")
    for name, request in sorted(outcome.requests.items()):
        _print_request(name, request)


def _print_request(name: str, request: Mapping[str, Any]) -> None:
    from temper_core.console import shown

    since = request.get("since")
    is_time = isinstance(since, int | float) and 0 < since < LATEST_S
    when = time.strftime(" since %Y-%m-%d %H:%M:%S", time.localtime(since)) if is_time else ""
    reason = f": {request['reason']}" if request.get("reason") else ""
    click.echo(f"{shown(name)} requests safe mode{when}{shown(reason)}")
