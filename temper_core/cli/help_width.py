"""The terminal width for which help is cached: click folds the text by it."""

import os
import sys

# click clamps the width of its help to this range.
NARROWEST = 52
WIDEST = 80


def help_name() -> str:
    """Return the cache name of the help for this terminal's width."""
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
