"""``temper profiles``: list, show and check workload profiles. One module per sub-command."""

import click

from temper_core.command_group import CommandGroup

COMMANDS = {
    "check": "Check profile files, and the *.toml of directories.",
    "explain": "Explain a pod's profile, and the layers of its threads.",
    "lint": "Report errors and warnings in profile files.",
    "list": "List every profile, and those that could not be loaded.",
    "schema": "Print the JSON Schema of profiles, for editors.",
    "show": "Show the profile of that id.",
}


class _ListByDefault(CommandGroup):
    """A group that runs ``list`` without a sub-command: ``temper profiles --output json``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``list`` before options that are not the group's own."""
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["list", *args] if is_option or not args else args)


@click.group(
    "profiles",
    cls=_ListByDefault,
    path="temper profiles",
    package="temper_core.cli.profiles",
    own=COMMANDS,
)
def command() -> None:
    """List, show, check and test workload profiles. Without a sub-command, list them."""
