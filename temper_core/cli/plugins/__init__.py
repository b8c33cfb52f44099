"""``temper plugins``: list plugins, and begin one. One module per sub-command."""

import click

from temper_core.command_group import ListByDefault

COMMANDS = {
    "list": "List the installed plugins and their state.",
    "new": "Begin a plugin: a distribution with tests, or one file.",
}


@click.group(
    "plugins",
    cls=ListByDefault,
    path="temper plugins",
    package="temper_core.cli.plugins",
    own=COMMANDS,
)
def command() -> None:
    """List plugins, and begin a new one. Without a sub-command, list them."""
