"""``-w``: a command runs again and again, and its newest result is shown."""

import io
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import wraps
from typing import Any

import click

from temper_core.errors import TemperError
from temper_core.finite_range import FiniteRange
from temper_core.result_formats import writes_yaml
from temper_core.visible_text import own_sequences

USUAL_S = 2.0
SHORTEST_S, LONGEST_S = 0.1, 3_600.0
FROM_THE_TOP = "\x1b[1;1H\x1b[J"
"""Moves to the first place of the screen and clears from there (ECMA-48: CUP, ED)."""
OWN_LINES = 2


def watch_options(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command -w and --interval: it shows its result again and again, until Ctrl-C.

    A terminal shows the newest result, as far as its lines suffice. Elsewhere results follow each
    other: documents of JSON and YAML so that a reader of several takes them apart. A failure of the
    first round ends the command. A later one is shown, and the next round comes all the same.
    """

    @wraps(callback)
    def again(*arguments: Any, is_watched: bool, interval_s: float, **options: Any) -> Any:  # noqa: ANN401 - click's
        if not is_watched:
            return callback(*arguments, **options)
        _show_rounds(lambda: callback(*arguments, **options), interval_s)
        return None

    decorated: Callable[..., Any] = click.option(
        "--interval",
        "interval_s",
        type=FiniteRange(SHORTEST_S, LONGEST_S),
        default=USUAL_S,
        show_default=True,
        metavar="SECONDS",
        help="The time between two results of --watch.",
    )(again)
    return click.option(
        "-w", "--watch", "is_watched", is_flag=True, help="Show new results until Ctrl-C."
    )(decorated)


def _show_rounds(show: Callable[[], object], interval_s: float) -> None:
    sys.stdout.write(_round(show))
    while True:
        sys.stdout.flush()
        time.sleep(interval_s)
        try:
            text = _round(show)
        except TemperError as error:
            from temper_core.console import print_error  # noqa: PLC0415 - which imports this

            print_error(error)
        else:
            sys.stdout.write(text if sys.stdout.isatty() else f"{_separator()}{text}")


def _separator() -> str:
    return "---\n" if writes_yaml() else "\n"


def _round(show: Callable[[], object]) -> str:
    """Run *show* once. Return what it prints, after the sequence that clears a terminal."""
    held = _Held(sys.stdout)
    with redirect_stdout(held), suppress(click.exceptions.Exit):
        show()
    text = held.getvalue()
    if not held.isatty():
        return text
    return own_sequences(FROM_THE_TOP, sys.stdout) + _fitted(text)


def _fitted(text: str) -> str:
    """Return the time, and as many lines of *text* as the terminal has."""
    lines = text.splitlines()
    most = max(1, shutil.get_terminal_size().lines - OWN_LINES)
    left_out = len(lines) - most
    shown = [time.strftime("%H:%M:%S"), *lines[:most]]
    if left_out > 0:
        shown[-1] = f"({left_out + 1} more lines)"
    return "\n".join(shown) + "\n"


class _Held(io.StringIO):
    """The output of a command, kept until it is complete. It is like *stream* for the command."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - sys.stdout
        super().__init__()
        self._is_terminal = bool(stream.isatty())
        self.makes_visible = getattr(stream, "makes_visible", False)

    def isatty(self) -> bool:
        return self._is_terminal
