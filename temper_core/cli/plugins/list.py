"""``temper plugins list``: the installed plugins, their hooks, and those that were set aside."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.cli.plugins_directory import PLUGINS_DIRECTORY, with_plugins_directory
from temper_core.console import output_option, print_json

if TYPE_CHECKING:
    from temper_core.records.snapshots import PluginState
    from temper_core.settings.models import Settings


Row = Mapping[str, Any]


@click.command("list")
@click.option("--settings", "path", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option("--strict-plugins", is_flag=True, help="Exit with 2 where a plugin was set aside.")
@click.option("--agent", "asks_agent", is_flag=True, help="List those of the running agent.")
@PLUGINS_DIRECTORY
@output_option
def command(
    path: Path | None,
    strict_plugins: bool,
    asks_agent: bool,
    plugins_directory: Path | None,
    output: str,
) -> None:
    """List the installed plugins and their state.

    Every plugin is loaded into this process and its hooks are called. The agent need not run.
    --agent lists the plugins of the running agent instead, with the parts that it has set aside
    and why. Such a plugin is degraded.

    A plugin that was set aside is no error of this command, unless --strict-plugins or
    [plugin_host] strict is set: then the exit code is 2. With --agent it is 3 if none answers.
    """
    from temper_core.settings import load

    settings = with_plugins_directory(load(path).settings, plugins_directory)
    rows = _agents_rows(settings) if asks_agent else _loaded_rows(settings)
    if output == "json":
        print_json(rows)
    else:
        _print_table(rows)
        if not asks_agent:
            click.echo("\nAs loaded by this command. temper plugins --agent: those of the agent.")
    if strict_plugins or settings.plugin_host.strict:
        _refuse_broken(rows)


def _agents_rows(settings: "Settings") -> Sequence[Row]:
    from temper_core.client import ask_agent
    from temper_core.observed import rows

    return rows(ask_agent("/plugins", settings=settings), "plugins")


def _loaded_rows(settings: "Settings") -> Sequence[Row]:
    import attrs

    # Lenient while the hooks are called, so that the list is complete before the command fails.
    lenient = attrs.evolve(settings.plugin_host, strict=False)
    states = _states(attrs.evolve(settings, plugin_host=lenient))
    return [attrs.asdict(state) for state in states]


def _states(settings: "Settings") -> "tuple[PluginState, ...]":
    from temper_core.node import builtin_plugin
    from temper_core.plugin_host import RECORDS, load_host

    host = load_host(settings, extra={builtin_plugin.NAME: builtin_plugin})
    for hook, record in RECORDS.items():
        host.gather(hook, record)
    return host.states()


def _refuse_broken(rows: Sequence[Row]) -> None:
    from temper_core.errors import PluginError

    for row in rows:
        if row.get("failure") and row.get("state") != "not_allowed":
            raise PluginError(str(row.get("name")), str(row["failure"]))


def _print_table(rows: Sequence[Row]) -> None:
    from temper_core.console import plain_table, printable, results_console

    table = plain_table("plugin", "version", "distribution", "state", "hooks", "failure")
    for row in rows:
        told = [str(row.get(key, "")) for key in ("name", "version", "distribution", "state")]
        hooks = " ".join(hook.removeprefix("temper_") for hook in _texts(row, "hooks"))
        table.add_row(*map(printable, (*told, hooks, _why(row))))
    results_console().print(table)


def _why(row: Row) -> str:
    """Return which parts of a plugin are set aside and why, else its last failure."""
    parts = _texts(row, "lost")
    return f"set aside: {'; '.join(parts)}" if parts else str(row.get("failure") or "")


def _texts(row: Row, key: str) -> list[str]:
    value = row.get(key)
    return [str(text) for text in value] if isinstance(value, list | tuple) else []
