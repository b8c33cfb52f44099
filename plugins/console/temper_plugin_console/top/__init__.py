"""``temper top``: the node's CPUs, layers, pods, threads and waits on one live screen."""

import os
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from temper_core import ask_observation
from temper_core.console import FiniteRange, read_settings, settings_option
from temper_plugin_console.picture import save_option

if TYPE_CHECKING:
    from rich.console import Console

    from temper_plugin_console.top.looks import Ask, ObservationPoller

WIDE_ENOUGH = 10_000
TERMINALS_WITHOUT_CURSOR = ("", "dumb", "unknown")


@click.command("top")
@click.option(
    "--interval",
    type=FiniteRange(min=0.2, max=86_400),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option("--once", is_flag=True, help="Print one screen and end.")
@click.option("--iterations", type=click.IntRange(min=1), help="End after this many screens.")
@click.option(
    "--mouse/--no-mouse",
    "has_mouse",
    default=True,
    help="Take clicks and the wheel on a terminal. With --no-mouse the terminal selects text.",
)
@save_option
@settings_option
def command(
    interval: float,
    once: bool,
    iterations: int | None,
    has_mouse: bool,
    save: Path | None,
    settings_path: Path | None,
) -> None:
    """Watch CPUs, layers, pods, threads and waits. Q or Ctrl-C ends it, ? lists the keys.

    In a pipe one screen is printed in full, or as many as --iterations asks for. A terminal
    without cursor gets each screen in full below the last one. Exit code 3 if no agent answers at
    the start. If an agent stops answering later, it waits for the agent to come back.

    --save writes one screen as a picture, after one --interval.
    """
    settings = read_settings(settings_path)
    if save is not None:
        _save(save, lambda threads: ask_observation(settings, threads), interval)
        return
    most = 1 if once else iterations
    try:
        _show(lambda threads: ask_observation(settings, threads), interval, most, has_mouse)
    except KeyboardInterrupt:
        return


def _show(ask: "Ask", interval: float, most: int | None, has_mouse: bool) -> None:
    from temper_core import VisibleConsole
    from temper_plugin_console.top.looks import FEW, ObservationPoller

    console = VisibleConsole()
    looks = ObservationPoller.begin(ask, FEW)
    if not console.is_terminal:
        most = most or 1
    width = console.width if console.is_terminal else WIDE_ENOUGH
    if console.is_terminal and os.environ.get("TERM", "") in TERMINALS_WITHOUT_CURSOR:
        console = VisibleConsole(force_terminal=False)
    if most == 1 or not console.is_terminal:
        _print_each(console, looks, interval, most, width)
        return
    from temper_plugin_console.top.watching import watch

    watch(console, looks, interval, most, has_mouse=has_mouse)


def _save(path: Path, ask: "Ask", interval: float) -> None:
    from rich.text import Text

    from temper_plugin_console.picture import picture_width
    from temper_plugin_console.picture import save as write_picture
    from temper_plugin_console.top.looks import FEW, ObservationPoller
    from temper_plugin_console.top.screen import whole_text

    looks = ObservationPoller.begin(ask, FEW)
    time.sleep(interval)  # the use of CPUs is known between two looks
    lines = whole_text(looks.look(), picture_width())
    write_picture(path, "temper top", Text("\n").join(lines))


def _print_each(
    console: "Console", looks: "ObservationPoller", interval: float, most: int | None, width: int
) -> None:
    from rich.text import Text

    from temper_plugin_console.top.screen import whole_text

    for number in count(1):
        text = Text("\n").join(whole_text(looks.seen, width, folds=console.is_terminal))
        console.print(text, soft_wrap=True)
        if number == most:
            return
        time.sleep(interval)
        looks.look()
        console.print()
