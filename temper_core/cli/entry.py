"""Where ``temper`` begins: the help at once if it is remembered, anything else through click."""

import os
import sys

from temper_core.cli.remembered import recall
from temper_core.standard_output import deliver

# Between these click makes use of the width, and nowhere else.
NARROWEST = 52
WIDEST = 80


def main() -> None:
    """Run ``temper``, and exit with its code."""
    sys.exit(deliver(_run))


def _run() -> int:
    if sys.argv[1:] in (["--help"], ["-h"]):
        text = recall(help_name())
        if text is not None:
            sys.stdout.write(text)
            return 0
    from temper_core.cli.main import run

    return run()


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
