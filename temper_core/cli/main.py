"""``temper``: a group of commands that are imported only when they are called."""

import sys
from collections.abc import Mapping

import click

from temper_core import __version__
from temper_core.cli.help_width import help_name
from temper_core.cli.remembered import remember
from temper_core.command_group import CommandGroup
from temper_core.errors import EXIT_CLEAN, TemperError
from temper_core.plugin_commands import has_plugin_files
from temper_core.standard_output import deliver

CORE_COMMANDS: Mapping[str, str] = {
    "agent": "Run the node agent.",
    "completion": "Print the completion script of a shell.",
    "doctor": "Check what enforcing needs on this machine.",
    "engine": "Judge a configuration of the engine.",
    "events": "Show what happened on this node, or follow it.",
    "explain": "Explain why a pod is placed where it is.",
    "machine": "Show the shape of this machine.",
    "observe": "Show the agent's last snapshot.",
    "plan": "Compile pods into layers, without touching anything.",
    "plugins": "List plugins and their state, and begin one.",
    "profiles": "List, show and check workload profiles.",
    "restore": "Undo what Temper may have left on this host.",
    "run": "Start a command as a workload with a tier.",
    "safe-mode": "Request the stock scheduler, or withdraw the request.",
    "settings": "Print the effective settings and where each came from.",
    "simulate": "Decide and judge a recorded node again.",
}
EXIT_INTERRUPTED = 130


class _RootGroup(CommandGroup):
    """``temper`` itself: its help is cached for the next start."""

    def get_help(self, ctx: click.Context) -> str:
        """Render the help, and cache it unless the commands of plugin files may be in it."""
        text = super().get_help(ctx)
        if not has_plugin_files():
            remember(help_name(), f"{text}\n")
        return text


@click.group(
    cls=_RootGroup,
    path="temper",
    package="temper_core.cli",
    own=CORE_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="temper")
def temper() -> None:
    """Give every thread on this node the CPU treatment it needs.

    Exit codes: 0 clean, 1 findings, 2 an input error, 3 the machine cannot do it.
    """


def main() -> None:
    """Run ``temper``, and exit with its code."""
    sys.exit(deliver(run))


def run() -> int:
    """Run ``temper`` and return its exit code. Print a TemperError without a traceback."""
    try:
        code = temper.main(standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except (click.ClickException, TemperError) as error:
        from temper_core.console import print_error

        print_error(error)
        return error.exit_code
    return code if isinstance(code, int) else EXIT_CLEAN
