"""Groups of commands that plugins add to: ``temper``, ``temper profiles``, ``kubectl temper``."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

_GIVEN = "temper_core.command_group.given"


class CommandGroup(click.Group):
    """Commands that are imported when they are called: the group's own, and those of plugins.

    *path* is how a user writes the group, and what ``Command.under`` of a plugin names. *own* has
    the summary of each command of the group itself, which is ``command`` in the module of its name
    in *package*. An own command wins over a plugin's of the same name.
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
        """Keep the command's arguments: their settings say which plugins may be loaded."""
        ctx.meta[_GIVEN] = args[1:]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name; None where there is none."""
        if cmd_name in self.own:
            module = import_module(f"{self.package}.{cmd_name.replace('-', '_')}")
            command: click.Command = module.command
            return command
        if ctx.resilient_parsing:  # a shell completes, and wants no explanation
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
