"""Where ``temper`` begins: the help at once if it is remembered, anything else through click."""

import os
import sys

from temper_core.cli.remembered import recall


def main() -> None:
    """Run ``temper``."""
    if sys.argv[1:] in (["--help"], ["-h"]):
        text = recall(help_name())
        if text is not None:
            sys.stdout.write(text)
            return
    from temper_core.cli.main import main as run

    run()


def help_name() -> str:
    """Return the name under which the help for this terminal's width is remembered."""
    columns = os.environ.get("COLUMNS", "")
    if not columns.isdecimal():
        try:
            columns = str(os.get_terminal_size(sys.__stdout__.fileno()).columns)  # type: ignore[union-attr]
        except (OSError, ValueError, AttributeError):
            columns = "80"
    return f"help-{columns}.txt"
