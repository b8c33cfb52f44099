"""Entry point of ``temper``: prints cached help at once, and runs all else through click."""

import sys

from temper_core.cli.help_width import help_name
from temper_core.cli.remembered import recall
from temper_core.standard_output import deliver


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
