"""``temper k8s``: a group whose commands are imported when they are called."""

from collections.abc import Mapping
from importlib import import_module

import click

COMMANDS: Mapping[str, str] = {
    "doctor": "Check the cluster, its nodes and Temper's installation.",
    "restore": "Have nodes undo what Temper left on them.",
    "status": "Show how every node fares, the worst first.",
}


class LazyCommands(click.Group):
    """The commands by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name them."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the one of that name."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"{__package__}.{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group("k8s", cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Look after Temper in a Kubernetes cluster; kubectl temper is the same.

    Exit codes: 0 clean, 1 findings, 2 an error in what was given, 3 there is no API server, or a
    right is missing.
    """
