"""``temper observe --edges``: have the agent watch wake-ups and waits, and show a window of it."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from temper_core.observed import number, rows, table, text

if TYPE_CHECKING:
    from rich.console import Group

    from temper_core.console import Column, Row
    from temper_core.settings import Settings

USUAL_S = 60.0
LEAST_S, LONGEST_S = 1.0, 3_600.0
"""The agent's own bounds."""
ASK_AGAIN_S = 0.5
USUAL_ROWS = 20

edges_option = click.option(
    "--edges",
    is_flag=True,
    help="Have the agent watch wake-ups and waits for --seconds (60), and show its next window.",
)


def show_edges(
    settings: "Settings", *, seconds: float | None, top: int | None, output: str
) -> None:
    """Ask for windows during *seconds*, wait for one, and print its *top* rows of each kind.

    Raises UsageError for a number of seconds that the agent would not take, MachineError where
    nothing can be watched or no window came in time, and as ``ask_agent``.
    """
    from temper_core.console import print_json, results_console

    wanted_s = USUAL_S if seconds is None else seconds
    if not LEAST_S <= wanted_s <= LONGEST_S:
        raise click.UsageError(f"--edges takes {LEAST_S:g} to {LONGEST_S:g} --seconds")
    document = _watched(settings, wanted_s)
    if output == "json":
        print_json(document)
        return
    results_console().print(edge_tables(document, top or USUAL_ROWS))


def _watched(settings: "Settings", seconds: float) -> "Row":
    """Return what ``/wakes`` says once it has a window that it had not when we asked."""
    from temper_core.errors import MachineError

    ends_at = time.monotonic() + seconds
    document = _asked(settings, seconds)
    known = table(document, "window").get("at")
    is_told = False
    while table(document, "window").get("at") == known:
        if text(document, "reason"):
            raise MachineError(f"wake-ups are not watched: {text(document, 'reason')}")
        every_s = number(table(document, "window"), "every_s")
        if every_s and not is_told:
            is_told = True
            click.echo(f"temper: waiting; windows come every {every_s:.0f} s", err=True)
        if time.monotonic() >= ends_at:
            raise MachineError(f"no window came within {seconds:g} s; give it more --seconds")
        time.sleep(ASK_AGAIN_S)
        document = _asked(settings)
    return document


def _asked(settings: "Settings", seconds: float | None = None) -> "Row":
    from temper_core.client import ask_agent
    from temper_core.errors import MachineError

    if seconds is None:
        document = ask_agent("/wakes", settings=settings)
    else:
        document = ask_agent("/wakes", method="PUT", body={"seconds": seconds}, settings=settings)
    if not isinstance(document, Mapping) or "window" not in document:
        raise MachineError("the agent's answer to /wakes is none that this version knows")
    return document


def edge_tables(document: "Row", top: int) -> "Group":
    """Render the last window as tables of *top* rows."""
    from rich.console import Group
    from rich.text import Text

    from temper_core.console import table_of

    window = table(document, "window")
    length_s = number(window, "length_s") or 0.0
    tables = [
        table_of("who wakes whom", _edge_columns(length_s), rows(window, "edges")[:top]),
        table_of(
            "who waited behind whom (1 ms or more)", _BLOCKINGS, rows(window, "blockings")[:top]
        ),
        table_of("waits for a CPU", _WAITS, rows(window, "waits")[:top]),
    ]
    return Group(Text(_headline(window, length_s)), *(each for each in tables if each is not None))


def _headline(window: "Row", length_s: float) -> str:
    lost = number(window, "lost") or 0
    rate, every_s = number(window, "switches_per_s") or 0.0, number(window, "every_s") or 0.0
    return (
        f"window of {length_s * 1e3:.0f} ms up to {text(window, 'at')}, every {every_s:.0f} s  "
        f"{rate:.0f} switches/s" + (f"  {lost:.0f} edges found no room" if lost else "")
    )


def _party(role: str, nobody: str) -> "Callable[[Row], object]":
    def read(row: "Row") -> object:
        party = table(row, role)
        name, tid = text(party, "comm"), party.get("tid")
        return f"{name}[{tid}]" if tid else nobody

    return read


def _home(role: str) -> "Callable[[Row], object]":
    """Say where a thread lives: its pod, or else its process; and its layer."""

    def read(row: "Row") -> object:
        party = table(row, role)
        layer = text(party, "layer")
        home = text(party, "pod") or text(party, "process")
        return f"{home} ({layer})" if layer else home

    return read


def _edge_columns(length_s: float) -> "tuple[Column, ...]":
    def per_s(row: "Row") -> object:
        return f"{(number(row, 'wakes') or 0) / length_s:.0f}" if length_s else None

    return (
        ("waker", _party("waker", "(interrupt)")),
        ("of", _home("waker")),
        ("wakes", _party("wakee", "-")),
        ("in", _home("wakee")),
        ("times", lambda row: row.get("wakes")),
        ("per s", per_s),
    )


def _ms(key: str, by: str = "") -> "Callable[[Row], object]":
    def read(row: "Row") -> object:
        value, divisor = number(row, key), number(row, by) if by else 1.0
        return None if value is None or not divisor else f"{value * 1e3 / divisor:.3f}"

    return read


def _bound(key: str) -> "Callable[[Row], object]":
    def read(row: "Row") -> object:
        value = number(row, key)
        return None if value is None else f"{value / 1e3:.3f}"

    return read


_BLOCKINGS: "tuple[Column, ...]" = (
    ("waiter", _party("waiter", "-")),
    ("of", _home("waiter")),
    ("behind", _party("runner", "(idle)")),
    ("in", _home("runner")),
    ("waits", lambda row: row.get("waits")),
    ("ms in all", _ms("waited_s")),
)
_WAITS: "tuple[Column, ...]" = (
    ("subject", lambda row: row.get("subject")),
    ("waits", lambda row: row.get("waits")),
    ("mean ms", _ms("total_s", by="waits")),
    ("p50 under ms", _bound("p50_under_us")),
    ("p99 under ms", _bound("p99_under_us")),
)
