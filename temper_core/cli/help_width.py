"""The width of the help: what it is remembered by, for it says the same only at that width."""

import os
import sys

# Between these click makes use of the width, and nowhere else.
NARROWEST = 52
WIDEST = 80


def help_name() -> str:
    """Return the name under which the help for this terminal's width is remembered."""
    return f"help-{min(max(_columns(), NARROWEST), WIDEST)}.txt"


def _columns() -> int:
    """Return the terminal's width as click finds it."""
    try:
        columns = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        columns = 0
    if columns > 0:
        return columns
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or WIDEST  # type: ignore[union-attr]
    except (OSError, ValueError, AttributeError):
        return WIDEST
