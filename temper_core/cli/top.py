"""``temper top``: the observation again and again, on one screen."""

import time
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.cli.client import observation, read_settings, settings_option
from temper_core.cli.observe import a_console, observation_tables

if TYPE_CHECKING:
    from rich.console import RenderableType

    from temper_core.settings import Settings

THREADS = 30


@click.command("top")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.2),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option("--once", is_flag=True, help="Print one screen and end.")
@click.option("--iterations", type=click.IntRange(min=1), help="End after so many screens.")
@settings_option
def command(
    interval: float, once: bool, iterations: int | None, settings_path: Path | None
) -> None:
    """Watch layers, pods, busiest threads and pressure; Ctrl-C ends it.

    In a pipe every screen is printed below the last one. Exit code 3 where no agent answers at
    the start; an agent that goes away later is waited for.
    """
    settings = read_settings(settings_path)
    try:
        _show(_screens(settings, interval, 1 if once else iterations))
    except KeyboardInterrupt:
        return


def _show(screens: Iterator["RenderableType"]) -> None:
    from rich.live import Live

    console = a_console()
    first = next(screens)
    if not console.is_terminal:
        console.print(first)
        for screen in screens:
            console.print()
            console.print(screen)
        return
    with Live(first, console=console, auto_refresh=False) as live:
        for screen in screens:
            live.update(screen, refresh=True)


def _screens(
    settings: "Settings", interval: float, iterations: int | None
) -> Iterator["RenderableType"]:
    last = observation(settings, THREADS)
    yield observation_tables(last)
    for _ in range(iterations - 1) if iterations else count():
        time.sleep(interval)
        last, screen = _next_screen(settings, last)
        yield screen


def _next_screen(
    settings: "Settings", last: Mapping[str, Any]
) -> tuple[Mapping[str, Any], "RenderableType"]:
    """Ask again; where no agent answers, show what was last seen and say so."""
    from rich.console import Group
    from rich.text import Text

    from temper_core.errors import MachineError

    try:
        document = observation(settings, THREADS)
    except MachineError as error:
        return last, Group(Text(f"{error} (below is what was last seen)"), observation_tables(last))
    return document, observation_tables(document)
