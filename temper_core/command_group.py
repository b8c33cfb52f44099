"""Command groups that plugins extend: ``temper``, ``temper profiles``, ``kubectl temper``."""

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from temper_core.errors import TRACEBACK, PluginError, TemperError
from temper_core.standard_output import ReaderGone
from temper_core.suggestions import similar

LONGEST_SUMMARY = 80
_GIVEN = "temper_core.command_group.given"
_PLUGIN = "temper_core.command_group.plugin"
_EXPECTED = (
    click.ClickException,
    click.exceptions.Exit,
    click.Abort,
    TemperError,
    ReaderGone,
)


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
        """Keep the command's arguments: their --settings determines the allowed plugins.

        A name that is no command is an error with the most similar one.
        """
        ctx.meta[_GIVEN] = args[1:]
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(error.message + self._suggestion(args[0]), ctx) from error

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - what the command returns
        """Run the command. Raise PluginError if a plugin's command fails with an error of its own.

        With ``TEMPER_TRACEBACK`` in the environment, its traceback goes to standard error.
        """
        try:
            return super().invoke(ctx)
        except _EXPECTED:
            raise
        except Exception as error:
            plugin = ctx.meta.get(_PLUGIN)
            if plugin is None:
                raise
            raise _failure(plugin, ctx.invoked_subcommand, error) from error

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command *cmd_name*, None if there is none."""
        if cmd_name in self.own:
            module = import_module(f"{self.package}.{cmd_name.replace('-', '_')}")
            command: click.Command = module.command
            return command
        if ctx.resilient_parsing:  # shell completion must not fail
            return None
        from temper_core.plugin_commands import load_command  # noqa: PLC0415 - slow

        loaded = load_command(self.path, cmd_name, ctx.meta.get(_GIVEN, ()))
        if loaded is None:
            return None
        ctx.meta[_PLUGIN] = loaded.plugin
        return loaded.command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self._summaries().items()))

    def _suggestion(self, name: str) -> str:
        meant = similar(name, self._summaries())
        return f" Did you mean {meant!r}?" if meant else ""

    def _summaries(self) -> Mapping[str, str]:
        from temper_core.plugin_commands import summaries  # noqa: PLC0415 - slow

        added = {name: _cut(summary) for name, summary in summaries(self.path).items()}
        return {**added, **self.own}


def _cut(summary: str) -> str:
    """Return *summary* on one line of at most LONGEST_SUMMARY characters."""
    line = "".join(letter if letter.isprintable() else " " for letter in summary)
    line = " ".join(line.split())
    return line if len(line) <= LONGEST_SUMMARY else f"{line[: LONGEST_SUMMARY - 1]}…"


def _failure(plugin: str, command: str | None, error: Exception) -> PluginError:
    """Return the failure of a plugin's *command* as one line. Print its traceback on request."""
    from temper_core.plugin_host.plain_errors import describe  # noqa: PLC0415 - slow

    if os.environ.get(TRACEBACK):
        import traceback  # noqa: PLC0415 - slow

        traceback.print_exception(error)
    return PluginError(plugin, f"the command {command!r} failed: {describe(error)}")


class ListByDefault(CommandGroup):
    """A group that runs ``list`` without a sub-command: ``temper profiles --output json``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``list`` before options that are not the group's own."""
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["list", *args] if is_option or not args else args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of ``list`` after the group's own, as they need no sub-command."""
        click.Command.format_options(self, ctx, formatter)
        listing = import_module(f"{self.package}.list").command
        helps = [option.get_help_record(ctx) for option in listing.params]
        with formatter.section("Options without a sub-command, as of list"):
            formatter.write_dl([each for each in helps if each is not None])
        self.format_commands(ctx, formatter)
