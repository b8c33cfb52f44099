"""The commands that plugins add."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import click

    from temper_core.plugin_host import Contribution, PluginHost
    from temper_core.records.contributions import Command

OPTION = "--settings"
"""The option for the settings file, the same in every command."""
LOAD_DEADLINE_S = 30.0
"""For the import of a command. On a busy node half a second of CPU time may take long."""


class LoadedCommand(NamedTuple):
    """A click command, and the name of the plugin that adds it."""

    plugin: str
    command: "click.Command"


def summaries(path: str) -> Mapping[str, str]:
    """Return name and summary of every command that plugins add to the group *path*.

    Empty if the default settings cannot be read, since they determine the allowed plugins.
    """
    from temper_core.errors import TemperError

    try:
        host = _host(None)
    except TemperError:
        return {}
    commands = [contribution.record for contribution in _contributions(host)]
    return {command.name: command.summary for command in commands if command.under == path}


def has_plugin_files() -> bool:
    """Whether the default settings name a directory of plugin files, which may change any time."""
    from temper_core.errors import TemperError
    from temper_core.settings import load

    try:
        return bool(load(None).settings.plugin_host.directory)
    except TemperError:
        return False


def load_command(path: str, name: str, arguments: Sequence[str] = ()) -> LoadedCommand | None:
    """Import the command *name* that a plugin adds to the group *path*, None if there is none.

    The settings file in *arguments*, or else the default one, determines the allowed plugins.
    Raises InputError if it cannot be read. Also raises InputError if the command may belong to a
    plugin that is set aside, not allowed, or first-party and not installed.
    """
    from temper_core.errors import InputError

    host = _host(settings_path(arguments))
    for contribution in _contributions(host):
        if (contribution.record.under, contribution.record.name) == (path, name):
            return _loaded(host, contribution)
    claim_of_name = f"{path} {name}"
    reasons = _missing(claim_of_name, {state.name for state in host.states()})
    reasons += [
        claim.reason for claim in host.contested("temper_commands") if claim.name == claim_of_name
    ]
    reasons += [
        f"plugin {state.name!r} is {_WITHOUT[state.state]}: {state.failure}"
        for state in host.states()
        if state.state in _WITHOUT
    ]
    if reasons:
        raise InputError("; ".join([f"no plugin offers {name!r}", *reasons]))
    return None


def _loaded(host: "PluginHost", contribution: "Contribution[Command]") -> LoadedCommand:
    """Import the command. Raise PluginError if the plugin returns something else."""
    import click

    from temper_core.errors import PluginError

    load = contribution.record.load
    command = host.call(contribution.plugin, load, deadline_s=LOAD_DEADLINE_S)
    if issubclass(type(command), click.Command):
        return LoadedCommand(contribution.plugin, command)
    name, kind = contribution.record.name, type(command).__name__
    raise PluginError(contribution.plugin, f"the command {name!r} is {kind}, no click command")


def _missing(command: str, installed: Collection[str]) -> list[str]:
    """Return how to install the plugin of *command*, if it is first-party and missing."""
    from temper_core.install_hints import install_command, plugin_with

    plugin = plugin_with(command)
    if plugin is None or plugin in installed:
        return []
    return [f"plugin {plugin!r} is not installed: {install_command(plugin)}"]


_WITHOUT = {"set_aside": "set aside", "not_allowed": "not loaded"}


def settings_path(arguments: Sequence[str]) -> Path | None:
    """Return the last settings file in a command's *arguments*, None without one."""
    path = None
    for number, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == OPTION:
            path = next(iter(arguments[number + 1 :]), path)
        elif argument.startswith(f"{OPTION}="):
            path = argument.removeprefix(f"{OPTION}=")
    return None if path is None else Path(path)


def _host(path: Path | None) -> "PluginHost":
    from attrs import evolve

    from temper_core.plugin_host import load_host
    from temper_core.settings import load

    settings = load(path).settings
    # A broken plugin must not hide the commands of the others.
    lenient = evolve(settings.plugin_host, strict=False)
    return load_host(evolve(settings, plugin_host=lenient))


def _contributions(host: "PluginHost") -> "list[Contribution[Command]]":
    from temper_core.records.contributions import Command

    return host.gather("temper_commands", Command)
