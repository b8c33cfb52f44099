"""``temper profiles``: list, show and check workload profiles. One module per sub-command."""

import click

from temper_core.command_group import ListByDefault

COMMANDS = {
    "check": "Check profile files, and the TOML files of directories.",
    "explain": "Explain a pod's profile, and the layers of its threads.",
    "lint": "Report errors and warnings in profile files.",
    "list": "List every profile, and those that could not be loaded.",
    "schema": "Print the JSON Schema of profiles, for editors.",
    "show": "Show the profile of that id.",
}


@click.group(
    "profiles",
    cls=ListByDefault,
    path="temper profiles",
    package="temper_core.cli.profiles",
    own=COMMANDS,
)
def command() -> None:
    """List, show, check and test workload profiles. Without a sub-command, list them."""
