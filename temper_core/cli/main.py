"""``temper``: a group of commands that are imported only when they are called."""

import sys
from collections.abc import Mapping
from importlib import import_module

import click

from temper_core import __version__
from temper_core.cli.help_width import help_name
from temper_core.cli.remembered import remember
from temper_core.errors import EXIT_CLEAN, TemperError
from temper_core.standard_output import deliver

CORE_COMMANDS: Mapping[str, str] = {
    "agent": "Run the node agent.",
    "completion": "Print the completion script of a shell.",
    "diff": "Say what has changed between two snapshots.",
    "doctor": "Check what enforcing needs on this machine.",
    "engine": "Judge a configuration of the engine.",
    "events": "Show what happened on this node, or follow it.",
    "explain": "Say why a pod is placed where it is.",
    "machine": "Show the shape of this machine.",
    "map": "Draw the CPUs by core with who runs there.",
    "observe": "Show the agent's last snapshot.",
    "plan": "Compile pods into layers, without touching anything.",
    "plugins": "List the installed plugins and their state.",
    "profiles": "List, show and check workload profiles.",
    "restore": "Undo what Temper may have left on this host.",
    "run": "Start a command as a workload with a tier.",
    "safe-mode": "Ask for the stock scheduler, or withdraw the request.",
    "settings": "Print the effective settings and where each came from.",
    "simulate": "Decide and judge a recorded node again.",
    "top": "Watch pods, layers and threads.",
}
EXIT_INTERRUPTED = 130
_GIVEN = "temper_core.cli.given"


class LazyGroup(click.Group):
    """Commands of the core by name, and those that plugins add."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name every command, the core's and the plugins'."""
        return sorted({**CORE_COMMANDS, **_plugin_summaries()})

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Keep what is given to the command: its settings say which plugins may have it."""
        ctx.meta[_GIVEN] = args[1:]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        if cmd_name in CORE_COMMANDS:
            module = import_module(f"temper_core.cli.{cmd_name.replace('-', '_')}")
            command: click.Command = module.command
            return command
        if ctx.resilient_parsing:  # a shell completes, and wants no explanation
            return None
        from temper_core.cli.plugin_commands import load_command

        return load_command(cmd_name, ctx.meta.get(_GIVEN, ()))

    def get_help(self, ctx: click.Context) -> str:
        """Render the help, and remember it for the next start."""
        text = super().get_help(ctx)
        remember(help_name(), f"{text}\n")
        return text

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted({**CORE_COMMANDS, **_plugin_summaries()}.items()))


def _plugin_summaries() -> Mapping[str, str]:
    from temper_core.cli.plugin_commands import summaries

    return summaries(reserved=frozenset(CORE_COMMANDS))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="temper")
def temper() -> None:
    """Give every thread on this node the CPU treatment it needs.

    Exit codes: 0 clean, 1 findings, 2 an error in what was given, 3 the machine cannot do it.
    """


def main() -> None:
    """Run ``temper``, and exit with its code."""
    sys.exit(deliver(run))


def run() -> int:
    """Run ``temper`` and return its exit code; print an error of ours as one line."""
    try:
        code = temper.main(standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except TemperError as error:
        for line in str(error).splitlines():
            click.echo(f"temper: {line}", err=True)
        return error.exit_code
    return code if isinstance(code, int) else EXIT_CLEAN
