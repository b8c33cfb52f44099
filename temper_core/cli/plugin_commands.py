"""The commands that plugins add, remembered so that ``temper --help`` need not import them.

The list is kept in the user's cache directory and trusted while nothing was installed or removed:
it carries the modification times of the directories that hold the installed distributions.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

    from temper_core.plugin_host import PluginHost


def summaries(reserved: frozenset[str]) -> Mapping[str, str]:
    """Return name and summary of every plugin's command; *reserved* names are the core's."""
    stamp = _stamp()
    remembered = _remembered(stamp)
    if remembered is None:
        remembered = {name: summary for name, summary in _ask_plugins() if name not in reserved}
        _remember(stamp, remembered)
    return remembered


def load_command(name: str) -> "click.Command | None":
    """Import the plugin's command of that name; None where no plugin has it."""
    host = _host()
    for contribution in _contributions(host):
        if contribution.record.name == name:
            command: click.Command = host.call(contribution.plugin, contribution.record.load)
            return command
    return None


def _host() -> "PluginHost":
    from temper_core.plugin_host import load_host
    from temper_core.settings import Settings

    return load_host(Settings())


def _contributions(host: "PluginHost"):  # type: ignore[no-untyped-def] # noqa: ANN202
    from temper_core.records.contributions import Command

    return host.gather("temper_commands", Command)


def _ask_plugins() -> list[tuple[str, str]]:
    return [(c.record.name, c.record.summary) for c in _contributions(_host())]


def _stamp() -> list[list[object]]:
    """Return a value that changes with every install: site directories and their times."""
    return [
        [path, os.stat(path).st_mtime_ns]  # noqa: PTH116 - pathlib costs start-up time
        for path in sys.path
        if path.endswith("-packages") and os.path.isdir(path)  # noqa: PTH112 - the same
    ]


def _cache_file() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return f"{home}/temper-agent/commands-{sys.version_info.major}.{sys.version_info.minor}.json"


def _remembered(stamp: list[list[object]]) -> Mapping[str, str] | None:
    try:
        with open(_cache_file(), encoding="utf-8") as file:  # noqa: PTH123 - the same
            kept = json.load(file)
        if kept["stamp"] != stamp:
            return None
        return {str(name): str(summary) for name, summary in kept["commands"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _remember(stamp: list[list[object]], commands: Mapping[str, str]) -> None:
    path = Path(_cache_file())
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps({"stamp": stamp, "commands": dict(commands)}))
        partial.replace(path)
    except OSError:
        # Without a cache the help is slower, and nothing else.
        return
