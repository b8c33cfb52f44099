"""The commands that plugins add."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

    from temper_core.plugin_host import Contribution, PluginHost
    from temper_core.records.contributions import Command


def summaries(reserved: frozenset[str]) -> Mapping[str, str]:
    """Return name and summary of every plugin's command; *reserved* names are the core's."""
    found = [contribution.record for contribution in _contributions(_host())]
    return {command.name: command.summary for command in found if command.name not in reserved}


def load_command(name: str) -> "click.Command | None":
    """Import the plugin's command of that name; None where no plugin has it.

    Raises InputError instead where a plugin that is set aside may be the one that has it.
    """
    from temper_core.errors import InputError

    host = _host()
    for contribution in _contributions(host):
        if contribution.record.name == name:
            return host.call(contribution.plugin, contribution.record.load)
    reasons = [claim.reason for claim in host.contested("temper_commands") if claim.name == name]
    reasons += [
        f"plugin {state.name!r} is set aside: {state.failure}"
        for state in host.states()
        if state.state == "set_aside"
    ]
    if reasons:
        raise InputError("; ".join([f"no plugin offers {name!r}", *reasons]))
    return None


def _host() -> "PluginHost":
    from temper_core.plugin_host import load_host
    from temper_core.settings import Settings

    return load_host(Settings())


def _contributions(host: "PluginHost") -> "list[Contribution[Command]]":
    from temper_core.records.contributions import Command

    return host.gather("temper_commands", Command)
