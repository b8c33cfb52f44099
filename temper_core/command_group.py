"""Command groups that plugins extend: ``temper``, ``temper profiles``, ``kubectl temper``."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

_GIVEN = "temper_core.command_group.given"


class CommandGroup(click.Group):
    """A group whose own commands, and those of plugins, are imported when they are called.

    *path* is the group as a user types it, and the value of ``Command.under`` in plugins. *own* has
    the summary of each command of the group itself. The module of that name in *package* has it as
    ``command``. An own command takes precedence over a plugin's of the same name.
    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401 - click's own
        path: str,
        package: str,
        own: Mapping[str, str],
        **options: Any,  # noqa: ANN401 - click's own
    ) -> None:
        super().__init__(*arguments, **options)
        self.path, self.package, self.own = path, package, own

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands."""
        return sorted(self._summaries())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Keep the command's arguments: their --settings determines the allowed plugins."""
        ctx.meta[_GIVEN] = args[1:]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command *cmd_name*, None if there is none."""
        if cmd_name in self.own:
            module = import_module(f"{self.package}.{cmd_name.replace('-', '_')}")
            command: click.Command = module.command
            return command
        if ctx.resilient_parsing:  # shell completion must not fail
            return None
        from temper_core.plugin_commands import load_command  # noqa: PLC0415 - slow

        return load_command(self.path, cmd_name, ctx.meta.get(_GIVEN, ()))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self._summaries().items()))

    def _summaries(self) -> Mapping[str, str]:
        from temper_core.plugin_commands import summaries  # noqa: PLC0415 - slow

        return {**summaries(self.path), **self.own}
