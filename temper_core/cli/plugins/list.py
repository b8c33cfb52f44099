"""``temper plugins list``: the installed plugins, their hooks, and those that were set aside."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from temper_core.cli.plugins_directory import PLUGINS_DIRECTORY, with_plugins_directory
from temper_core.console import output_option, print_json

if TYPE_CHECKING:
    from temper_core.records.snapshots import PluginState
    from temper_core.settings.models import Settings


@click.command("list")
@click.option("--settings", "path", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option("--strict-plugins", is_flag=True, help="Exit with 2 where a plugin was set aside.")
@PLUGINS_DIRECTORY
@output_option
def command(
    path: Path | None, strict_plugins: bool, plugins_directory: Path | None, output: str
) -> None:
    """List the installed plugins and their state.

    Every plugin is loaded into this process and its hooks are called. The agent need not run. Its
    own list is at /plugins. A plugin that was set aside is no error of this command, unless
    --strict-plugins or [plugin_host] strict is set: then the exit code is 2.
    """
    import attrs

    from temper_core.settings import load

    settings = with_plugins_directory(load(path).settings, plugins_directory)
    strict = strict_plugins or settings.plugin_host.strict
    # Lenient while the hooks are called, so that the list is complete before the command fails.
    lenient = attrs.evolve(settings.plugin_host, strict=False)
    states = _states(attrs.evolve(settings, plugin_host=lenient))
    if output == "json":
        print_json([attrs.asdict(state) for state in states])
    else:
        _print_table(states)
    if strict:
        _refuse_broken(states)


def _states(settings: "Settings") -> "tuple[PluginState, ...]":
    from temper_core.node import builtin_plugin
    from temper_core.plugin_host import RECORDS, load_host

    host = load_host(settings, extra={builtin_plugin.NAME: builtin_plugin})
    for hook, record in RECORDS.items():
        host.gather(hook, record)
    return host.states()


def _refuse_broken(states: "tuple[PluginState, ...]") -> None:
    from temper_core.errors import PluginError

    for state in states:
        if state.failure and state.state != "not_allowed":
            raise PluginError(state.name, state.failure)


def _print_table(states: "tuple[PluginState, ...]") -> None:
    from temper_core.console import plain_table, results_console

    table = plain_table("plugin", "version", "distribution", "state", "hooks", "failure")
    for state in states:
        hooks = " ".join(hook.removeprefix("temper_") for hook in state.hooks)
        table.add_row(
            state.name, state.version, state.distribution, state.state, hooks, state.failure
        )
    results_console().print(table)
