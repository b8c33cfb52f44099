"""``kubectl temper``: the commands of ``temper k8s`` as a kubectl plugin."""

from collections.abc import Sequence

import click

from temper_core import TemperError
from temper_plugin_kubernetes.operators import PROGRAM
from temper_plugin_kubernetes.operators.command import command

INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code. A TemperError is printed without a traceback."""
    try:
        code = command.main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except TemperError as error:
        for line in str(error).split("\n"):  # no other end of a line
            click.echo(f"{PROGRAM}: {line}", err=True)
        return error.exit_code
    return code if isinstance(code, int) else 0
