"""``temper wakes``: request windows of wake-ups and waits from the agent, and show one."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core import MachineError, ask_agent
from temper_core.console import (
    Column,
    FiniteRange,
    Row,
    output_option,
    print_json,
    printable,
    read_settings,
    results_console,
    settings_option,
    table_of,
)
from temper_core.observed import number, rows, table, text

if TYPE_CHECKING:
    from rich.console import Group

USUAL_S = 60.0
LEAST_S, LONGEST_S = 1.0, 3_600.0
"""The agent's own bounds."""
ASK_AGAIN_S = 0.5
USUAL_ROWS = 20
MOST_ROWS = 5_000


@click.command("wakes")
@click.option(
    "--seconds",
    type=FiniteRange(min=LEAST_S, max=LONGEST_S),
    default=USUAL_S,
    show_default=True,
    help="For how long the agent watches.",
)
@click.option(
    "--top",
    type=click.IntRange(1, MOST_ROWS),
    default=USUAL_ROWS,
    show_default=True,
    help="Rows of each table.",
)
@click.option("--pod", metavar="TEXT", help="Only rows with a pod whose name contains TEXT.")
@click.option("--thread", metavar="TEXT", help="Only rows with a thread whose name contains TEXT.")
@settings_option
@output_option
def command(
    seconds: float,
    top: int,
    pod: str | None,
    thread: str | None,
    settings_path: Path | None,
    output: str,
) -> None:
    """Show which threads wake each other, and which wait for a CPU behind others.

    The agent watches wake-ups and waits in short windows for --seconds. Its next window is shown.
    --pod and --thread keep the rows of which one side fits. Waits by subject are of pods and the
    node, so --thread shows none.

    The exit code is 3 if no agent answers, nothing can be watched, or no window came in time.
    """
    document = filtered(_watched(settings_path, seconds), pod or "", thread or "")
    if output == "json":
        print_json(document)
        return
    results_console().print(edge_tables(document, top))


def _watched(settings_path: Path | None, seconds: float) -> Row:
    """Return the answer of ``/wakes`` once it holds a window newer than the first answer's."""
    settings = read_settings(settings_path)
    ends_at = time.monotonic() + seconds
    document = _asked(settings, seconds)
    known = table(document, "window").get("at")
    is_announced = False
    while table(document, "window").get("at") == known:
        if text(document, "reason"):
            raise MachineError(f"wake-ups are not watched: {text(document, 'reason')}")
        every_s = number(table(document, "window"), "every_s")
        if every_s and not is_announced:
            is_announced = True
            click.echo(f"temper: waiting; windows come every {every_s:.0f} s", err=True)
        if time.monotonic() >= ends_at:
            raise MachineError(f"no window came within {seconds:g} s; give it more --seconds")
        time.sleep(ASK_AGAIN_S)
        document = _asked(settings)
    return document


def _asked(settings: Any, seconds: float | None = None) -> Row:  # noqa: ANN401 - the agent's
    if seconds is None:
        document = ask_agent("/wakes", settings=settings)
    else:
        document = ask_agent("/wakes", method="PUT", body={"seconds": seconds}, settings=settings)
    if not isinstance(document, Mapping) or "window" not in document:
        raise MachineError("the agent's answer to /wakes has no window: is its version another?")
    return document


def filtered(document: Row, pod: str, thread: str) -> Row:
    """Return *document* with the rows of its window that have such a pod and such a thread."""
    if not pod and not thread:
        return document
    window = table(document, "window")

    def fits(party: Row) -> bool:
        return pod in text(party, "pod") and thread in text(party, "comm")

    def kept(key: str, *roles: str) -> list[Row]:
        return [row for row in rows(window, key) if any(fits(table(row, role)) for role in roles)]

    waits = [] if thread else [row for row in rows(window, "waits") if pod in text(row, "subject")]
    parts = {
        "edges": kept("edges", "waker", "wakee"),
        "blockings": kept("blockings", "waiter", "runner"),
        "waits": waits,
    }
    return {**document, "window": {**window, **parts}}


def edge_tables(document: Row, top: int) -> "Group":
    """Render the last window as tables of *top* rows."""
    from rich.console import Group  # noqa: PLC0415 - slow, and for tables only
    from rich.text import Text  # noqa: PLC0415 - the same

    window = table(document, "window")
    length_s = number(window, "length_s") or 0.0
    tables = [
        table_of("wakers and wakees", _edge_columns(length_s), rows(window, "edges")[:top]),
        table_of(
            "waiters and runners (1 ms or more)",
            _BLOCKINGS,
            rows(window, "blockings")[:top],
        ),
        table_of("waits for a CPU", _WAITS, rows(window, "waits")[:top]),
    ]
    shown = (table for table in tables if table is not None)
    return Group(Text(printable(_headline(window, length_s))), *shown)


def _headline(window: Row, length_s: float) -> str:
    lost = number(window, "lost") or 0
    rate, every_s = number(window, "switches_per_s") or 0.0, number(window, "every_s") or 0.0
    return (
        f"window of {length_s * 1e3:.0f} ms up to {text(window, 'at')}, every {every_s:.0f} s  "
        f"{rate:.0f} switches/s" + (f"  {lost:.0f} edges found no room" if lost else "")
    )


def _party(role: str, empty: str) -> Callable[[Row], object]:
    def read(row: Row) -> object:
        party = table(row, role)
        name, tid = text(party, "comm"), party.get("tid")
        return f"{name}[{tid}]" if tid else empty

    return read


def _home(role: str) -> Callable[[Row], object]:
    """Return the cell of a thread's pod, or of its process without one, and its layer."""

    def read(row: Row) -> object:
        party = table(row, role)
        layer = text(party, "layer")
        home = text(party, "pod") or text(party, "process")
        return f"{home} ({layer})" if layer else home

    return read


def _edge_columns(length_s: float) -> tuple[Column, ...]:
    def per_s(row: Row) -> object:
        return f"{(number(row, 'wakes') or 0) / length_s:.0f}" if length_s else None

    return (
        ("waker", _party("waker", "(interrupt)")),
        ("of", _home("waker")),
        ("wakes", _party("wakee", "-")),
        ("in", _home("wakee")),
        ("times", lambda row: row.get("wakes")),
        ("per s", per_s),
    )


def _ms(key: str, by: str = "") -> Callable[[Row], object]:
    def read(row: Row) -> object:
        value, divisor = number(row, key), number(row, by) if by else 1.0
        return None if value is None or not divisor else f"{value * 1e3 / divisor:.3f}"

    return read


def _bound(key: str) -> Callable[[Row], object]:
    def read(row: Row) -> object:
        value = number(row, key)
        return None if value is None else f"{value / 1e3:.3f}"

    return read


_BLOCKINGS: tuple[Column, ...] = (
    ("waiter", _party("waiter", "-")),
    ("of", _home("waiter")),
    ("behind", _party("runner", "(idle)")),
    ("in", _home("runner")),
    ("waits", lambda row: row.get("waits")),
    ("ms in all", _ms("waited_s")),
)
_WAITS: tuple[Column, ...] = (
    ("subject", lambda row: row.get("subject")),
    ("waits", lambda row: row.get("waits")),
    ("mean ms", _ms("total_s", by="waits")),
    ("p50 under ms", _bound("p50_under_us")),
    ("p99 under ms", _bound("p99_under_us")),
)
