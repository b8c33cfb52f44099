"""``temper events``: the recorded events of this node, and the new ones as they come."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.console import (
    columns,
    output_option,
    print_json,
    printable,
    read_settings,
    settings_option,
)
from temper_core.errors import MachineError
from temper_core.result_formats import line_text

if TYPE_CHECKING:
    from temper_core.settings import Settings

AGAIN_S = 1.0
LATEST_S = 2**32
DATA = "data: "
COLUMNS = ("level", "kind", "subject", "reason", "requester", "outcome")


@click.command("events")
@click.option("--since", default="", help="An event's number, or an age such as 10m, 2h, 3d.")
@click.option("--kind", "kinds", multiple=True, help="Only events of this kind; may be repeated.")
@click.option("--limit", type=click.IntRange(1, 10_000), help="Show at most this many, the newest.")
@click.option("-w", "--follow", is_flag=True, help="Print new events as they happen.")
@settings_option
@output_option
def command(
    since: str,
    kinds: tuple[str, ...],
    limit: int | None,
    follow: bool,
    settings_path: Path | None,
    output: str,
) -> None:
    """Show what happened on this node: engines, safe mode, violations, profiles, requests.

    The agent keeps the newest events of each kind, also across restarts. With --follow and
    --output json each event is one line of JSON, with --output yaml a YAML document.
    """
    settings = read_settings(settings_path)
    query = {"since": since, "kind": ",".join(kinds), "limit": str(limit or "")}
    filters = {name: value for name, value in query.items() if value}
    answer = _asked(settings, filters)
    if not follow:
        _print(answer, output)
        return
    shown = answer["events"] if since or limit else []
    for event in shown:
        _print_line(event, output)
    for event in followed(settings, filters, answer["last"]):
        _print_line(event, output)


def followed(settings: "Settings", query: Mapping[str, str], last: int) -> Iterator[dict[str, Any]]:
    """Yield every event after number *last*. Reconnect when the stream ends."""
    from temper_core.client import stream_agent

    filters = {"kind": query["kind"]} if "kind" in query else {}
    while True:
        request = {**filters, "since": str(last)}
        for line in stream_agent("/events/stream", request, settings=settings):
            if line.startswith(DATA):
                event = _event_in(line)
                last = event["number"]
                yield event
        time.sleep(AGAIN_S)


def _asked(settings: "Settings", query: Mapping[str, str]) -> Mapping[str, Any]:
    from temper_core.client import ask_agent

    answer = ask_agent("/events", query, settings=settings)
    if not isinstance(answer, dict) or not isinstance(answer.get("events"), list):
        raise MachineError("the agent's answer to /events is malformed")
    if not all(map(_is_event, answer["events"])) or not isinstance(answer.get("last"), int):
        raise MachineError("the agent's answer to /events holds a malformed event")
    return answer


def _event_in(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line.removeprefix(DATA))
    except (ValueError, RecursionError):
        event = None
    if not _is_event(event):
        raise MachineError("the agent's stream of events holds a malformed event")
    checked: dict[str, Any] = event
    return checked


def _is_event(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("number"), int)


def _print(answer: Mapping[str, Any], output: str) -> None:
    if output == "json":
        print_json(answer)
        return
    if not answer["events"]:
        click.echo("no events")
        return
    rows = [
        [_when(event), *(str(event.get(column, "")) for column in COLUMNS)]
        for event in answer["events"]
    ]
    for line in columns(("time", *COLUMNS), rows):
        click.echo(line)


def _print_line(event: Mapping[str, Any], output: str) -> None:
    if output == "json":
        click.echo(line_text(event))
        return
    cells = [printable(str(event[column])) for column in COLUMNS if event.get(column)]
    click.echo("  ".join([_when(event), *cells]))


def _when(event: Mapping[str, Any]) -> str:
    at = event.get("at")
    is_time = isinstance(at, int | float) and 0 < at < LATEST_S
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)) if is_time else "-"
