"""``temper safe-mode``: request the stock scheduler, withdraw the request, list the requests."""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.console import (
    output_option,
    print_json,
    read_settings,
    read_settings_to_act,
    settings_option,
    watch_options,
)
from temper_core.errors import EXIT_FINDINGS, MachineError

if TYPE_CHECKING:
    from temper_core.cli.safe_mode_agents import AgentReport, Requests
    from temper_core.cli.safe_mode_outcome import SafeModeOutcome
    from temper_core.settings import Settings

LATEST_S = 2**32


class NotHeardError(MachineError):
    """The request is not certain to be in force on the whole host. ``lines`` are the reasons."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = tuple(lines)
        super().__init__("\n".join(self._lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """Return one line for each reason."""
        return self._lines


@click.command("safe-mode")
@click.argument("action", type=click.Choice(["on", "off", "status"]))
@click.option("--reason", default="", help="Why, in one line; shown with the request.")
@click.option(
    "--requester",
    default="cli",
    show_default=True,
    help="Name of the requester; safe mode ends with the last request.",
)
@settings_option
@output_option
@watch_options
@click.pass_context
def command(
    context: click.Context,
    action: str,
    reason: str,
    requester: str,
    settings_path: Path | None,
    output: str,
) -> None:
    """Request the stock scheduler (on), withdraw the request (off), or list requests (status).

    Every agent that runs on this host is asked; with --settings only the one of that file. If it
    does not take the request, 'on' writes a file that it reads, and 'off' removes it. All agents
    and all requests are listed. Exit codes: 1 if requests stand after 'off', 2 if another user may
    change the file of --settings, 3 if nothing could be done, if after 'on' an agent has not heard,
    cannot keep the request or an engine is still attached (with the command that helps), or if no
    agent answers 'status'. --watch is for 'status' only.
    """
    from temper_core.cli.safe_mode_outcome import Host
    from temper_core.cli.safe_mode_switch import Switch

    if action != "status" and context.params["is_watched"]:
        raise click.UsageError(f"--watch is for 'status', not for {action!r}")
    host = context.obj if isinstance(context.obj, Host) else Host()
    switch = Switch(_settings(action, settings_path), host, is_for_one=settings_path is not None)
    if action == "on":
        outcome = switch.on(requester, reason)
    else:
        outcome = switch.off(requester) if action == "off" else switch.status()
    _print(outcome, output)
    _exit(outcome, action)


def _settings(action: str, path: Path | None) -> "Settings":
    return read_settings(path) if action == "status" else read_settings_to_act(path)


def _exit(outcome: "SafeModeOutcome", action: str) -> None:
    if outcome.alarms:
        raise NotHeardError(outcome.alarms)
    if action == "status" and outcome.failure is not None:
        raise outcome.failure
    deaf = [agent for agent in outcome.agents if agent.is_deaf]
    if action == "off" and deaf:
        raise NotHeardError(_agent_line(agent) for agent in deaf)
    if action == "off" and outcome.has_requests:
        raise SystemExit(EXIT_FINDINGS)


def _print(outcome: "SafeModeOutcome", output: str) -> None:
    if output == "json":
        print_json(_document(outcome))
        return
    # Right after a request the mode is still the old one, so that it is not printed.
    click.echo(outcome.done or f"mode: {outcome.mode}")
    if outcome.is_file_silent:
        click.echo("which requests the host's files hold is not known: their disk does not answer")
    elif not outcome.has_requests:
        click.echo("no request for safe mode stands")
    for line in _lines(outcome):
        click.echo(line)


def _document(outcome: "SafeModeOutcome") -> dict[str, Any]:
    import attrs

    return {
        "done": outcome.done,
        "mode": outcome.mode,
        "requests": dict(outcome.requests),
        "agents": [attrs.asdict(agent) for agent in outcome.agents],
        "kept": dict(outcome.kept),
        "alarms": list(outcome.alarms),
        "is_file_silent": outcome.is_file_silent,
    }


def _lines(outcome: "SafeModeOutcome") -> Iterator[str]:
    from temper_core.console import printable

    yield from _request_lines(outcome.requests)
    for agent in outcome.agents:
        yield printable(_agent_line(agent))
        if agent.requests != outcome.requests:
            yield from _request_lines(agent.requests, "  there ")
    for path, requests in outcome.kept.items():
        yield from _request_lines(requests, f"{printable(path)}: ")


def _agent_line(agent: "AgentReport") -> str:
    if agent.problem:
        is_asked = "has NOT heard" if agent.is_asked else "does not answer"
        return f"{agent.name} {is_asked}: {agent.problem}" + (
            f"; run: {agent.remedy}" if agent.remedy else ""
        )
    mode = f", mode {agent.mode}" if agent.mode and not agent.is_asked else ""
    unkept = f", but keeps no change: {agent.unkept}" if agent.unkept else ""
    return f"{agent.name} {'has heard' if agent.has_heard else f'runs{mode}'}{unkept}"


def _request_lines(requests: "Requests", where: str = "") -> Iterator[str]:
    for name, request in sorted(requests.items()):
        yield _request_line(name, request, where)


def _request_line(name: str, request: Mapping[str, Any], where: str) -> str:
    from temper_core.console import shown

    since = request.get("since")
    is_time = isinstance(since, int | float) and 0 < since < LATEST_S
    when = time.strftime(" since %Y-%m-%d %H:%M:%S", time.localtime(since)) if is_time else ""
    reason = f": {request['reason']}" if request.get("reason") else ""
    return f"{where}{shown(name)} requests safe mode{when}{shown(reason)}"
