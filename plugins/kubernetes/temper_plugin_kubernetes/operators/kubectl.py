"""``kubectl temper``: the commands of ``temper k8s`` as a kubectl plugin."""

from collections.abc import Sequence

import click

from temper_core import TemperError
from temper_core.console import print_error
from temper_plugin_kubernetes.operators import PROGRAM
from temper_plugin_kubernetes.operators.command import command

INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code. A TemperError is printed without a traceback."""
    try:
        code = command.main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (click.ClickException, TemperError) as error:
        print_error(error, PROGRAM)
        return error.exit_code
    return code if isinstance(code, int) else 0
