"""``temper profiles``: list, show and check workload profiles; one module per sub-command."""

import click

from temper_core.cli.profiles import check, explain, lint, listing, record, schema, show, test


class _ListByDefault(click.Group):
    """A group that lists where no sub-command is named: ``temper profiles --output json``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``list`` before options that are not the group's own."""
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["list", *args] if is_option or not args else args)


@click.group("profiles", cls=_ListByDefault)
def command() -> None:
    """List, show, check and test workload profiles; without a sub-command, list them."""


for _module in (listing, show, check, lint, explain, schema, record, test):
    command.add_command(_module.command)
